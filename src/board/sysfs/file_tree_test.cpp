// The tree without FUSE: what is found, what comes and goes.
#include "board/sysfs/file_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "board/sysfs/device_tree.h"

namespace talpa::board {
namespace {

std::string text_at(const FileTree& tree, std::string_view path) {
    const auto node = tree.find(path);
    if (!node) return "(none)";
    const auto* const file = std::get_if<FileNode>(&node->is);
    return file == nullptr ? "(no file)" : file->read();
}

TEST(FileTreeTest, FindsWhatWasAddedAndNothingElse) {
    FileTree tree;
    tree.add("class/thing/state", attribute([] { return std::string("offline\n"); }));
    EXPECT_EQ(text_at(tree, "class/thing/state"), "offline\n");
    EXPECT_EQ(text_at(tree, "/class//thing/state"), "offline\n");
    EXPECT_EQ(text_at(tree, "class/thing"), "(no file)");
    EXPECT_EQ(text_at(tree, "class/thing/other"), "(none)");
    EXPECT_EQ(text_at(tree, "class/thing/state/below"), "(none)");
    EXPECT_EQ(text_at(tree, ""), "(no file)");
}

TEST(FileTreeTest, DynamicChildrenAreThoseOfTheMoment) {
    FileTree tree;
    bool running = false;
    tree.folder("debug").dynamic = [&running] {
        NodeMap now;
        if (running) now.emplace("trace0", debug_file(0400, [] { return std::string("text"); }));
        return now;
    };
    tree.add("debug/name", bytes_file("x"));
    EXPECT_EQ(text_at(tree, "debug/trace0"), "(none)");
    running = true;
    EXPECT_EQ(text_at(tree, "debug/trace0"), "text");
    EXPECT_EQ(FileTree::list(tree.folder("debug")).size(), 2u);
    running = false;
    EXPECT_EQ(FileTree::list(tree.folder("debug")).size(), 1u);
}

TEST(FileTreeTest, AttributesWithoutAWriterAreReadOnly) {
    EXPECT_EQ(std::get<FileNode>(attribute([] { return std::string(); }).is).mode, 0444u);
    EXPECT_EQ(std::get<FileNode>(attribute([] { return std::string(); }, [](std::string_view) { return 0; }).is).mode,
              0644u);
}

// The words are big-endian and the header's sizes add up; that a device-tree compiler reads it,
// tests/board_root_test.py shows.
TEST(DeviceTreeTest, WithoutSaysWhatTheVendorsTreeLacks) {
    const auto has = [](const DeviceTreeOptions& options, std::string_view text) {
        return flatten(imx93_device_tree(options)).find(text) != std::string::npos;
    };
    EXPECT_TRUE(has({}, "model@c0000000"));
    EXPECT_FALSE(has({.model_region = false}, "model@c0000000"));
    EXPECT_TRUE(has({}, "iomem=relaxed"));
    EXPECT_FALSE(has({.iomem_relaxed = false}, "iomem=relaxed"));
    EXPECT_TRUE(has({}, "clk-imx93.mcore_booted"));
    EXPECT_FALSE(has({.mcore_booted = false}, "clk-imx93.mcore_booted"));
    EXPECT_FALSE(has({}, "reusable"));
    EXPECT_TRUE(has({.ethosu_no_map = false}, "reusable"));
    EXPECT_TRUE(has({.ethosu = false}, "disabled"));
}

}  // namespace
}  // namespace talpa::board
