#include "base/host/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <thread>

namespace talpa::host {
namespace {

namespace fs = std::filesystem;

class FileTest : public testing::Test {
  protected:
    void SetUp() override {
        folder_ = fs::temp_directory_path() / ("talpa_file_test_" + std::to_string(::getpid()));
        fs::create_directories(folder_);
    }
    void TearDown() override { fs::remove_all(folder_); }
    fs::path folder_;
};

TEST_F(FileTest, WrittenTextIsReadBack) {
    ASSERT_TRUE(write_text(folder_ / "a", "hello"));
    EXPECT_EQ(read_text(folder_ / "a").value(), "hello");
    EXPECT_EQ(MappedFile::open(folder_ / "a").value().bytes().size(), 5u);
}

TEST_F(FileTest, ReplacingKeepsTheModeAndLeavesNoTemporary) {
    ASSERT_TRUE(write_text(folder_ / "a", "old"));
    fs::permissions(folder_ / "a", fs::perms::owner_read | fs::perms::owner_write);
    ASSERT_TRUE(write_text(folder_ / "a", "new"));
    EXPECT_EQ(fs::status(folder_ / "a").permissions(), fs::perms::owner_read | fs::perms::owner_write);
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(FileTest, FailedReplaceLeavesNoTemporary) {
    fs::create_directories(folder_ / "taken" / "inside");
    EXPECT_FALSE(write_text(folder_ / "taken", "x"));
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(FileTest, DevicesAreWrittenIntoAndLinksKept) {
    ASSERT_TRUE(write_text("/dev/null", "gone"));
    EXPECT_TRUE(fs::is_character_file("/dev/null"));
    ASSERT_TRUE(write_text(folder_ / "target", "old"));
    fs::create_symlink("target", folder_ / "link");
    ASSERT_TRUE(write_text(folder_ / "link", "new"));
    EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
    EXPECT_EQ(read_text(folder_ / "target").value(), "new");
}

TEST_F(FileTest, ErrorsNameThePath) {
    const auto missing = read_file(folder_ / "none");
    EXPECT_EQ(missing.error().code, ErrorCode::NotFound);
    EXPECT_NE(missing.error().message.find("none"), std::string::npos);
    EXPECT_EQ(read_file(folder_).error().code, ErrorCode::AccessFailed);
    ASSERT_TRUE(write_text(folder_ / "big", "12345"));
    EXPECT_EQ(read_file(folder_ / "big", 4).error().code, ErrorCode::OutOfResources);
}

TEST_F(FileTest, EndlessAndHugeFilesAreRefused) {
    const auto endless = MappedFile::open("/dev/zero", 1 << 20);
    ASSERT_FALSE(endless);
    EXPECT_EQ(endless.error().describe(), "/dev/zero is larger than the limit of 1048576 bytes (OutOfResources)");
    ASSERT_TRUE(write_text(folder_ / "sparse", ""));
    fs::resize_file(folder_ / "sparse", MappedFile::kLimitBytes + 1);
    const auto huge = MappedFile::open(folder_ / "sparse");
    ASSERT_FALSE(huge);
    EXPECT_EQ(huge.error().code, ErrorCode::OutOfResources);
    EXPECT_NE(huge.error().message.find("has 4294967297 bytes, more than the limit of 4294967296"), std::string::npos)
        << huge.error().message;
}

TEST_F(FileTest, PipesAreReadToTheirEnd) {
    const fs::path pipe = folder_ / "pipe";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    std::thread writer([&] { std::ofstream(pipe) << std::string(100'000, 'x'); });
    EXPECT_EQ(MappedFile::open(pipe).value().bytes().size(), 100'000u);
    writer.join();
}

TEST_F(FileTest, EmptyFilesAreFiles) {
    ASSERT_TRUE(write_text(folder_ / "empty", ""));
    EXPECT_EQ(MappedFile::open(folder_ / "empty").value().bytes().size(), 0u);
}

}  // namespace
}  // namespace talpa::host
