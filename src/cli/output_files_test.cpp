#include "cli/output_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace talpa::cli {
namespace {

namespace fs = std::filesystem;

class OutputFilesTest : public testing::Test {
  protected:
    void SetUp() override {
        fs::create_directories(folder_ / "sub");
        std::ofstream(folder_ / "model") << "model";
    }
    void TearDown() override { fs::remove_all(folder_); }
    [[nodiscard]] std::string verdict(const fs::path& output, const fs::path& other = {}) const {
        const auto checked = check_outputs({{"-o", output}, {"--csv", other}},
                                           {{"--labels", {}}, {"MODEL", folder_ / "model"}, {"--config", "/dev/null"}});
        return checked ? "fine" : checked.error().message;
    }
    fs::path folder_ = fs::temp_directory_path() / ("talpa_output_files_test_" + std::to_string(::getpid()));
};

TEST_F(OutputFilesTest, InputsAreKept) {
    EXPECT_EQ(verdict(folder_ / "model"), "-o " + (folder_ / "model").string() + " would overwrite an input (MODEL)");
    fs::create_hard_link(folder_ / "model", folder_ / "link");
    fs::create_symlink("../model", folder_ / "sub" / "symlink");
    for (const char* name : {"link", "sub/symlink", "sub/../model"})
        EXPECT_NE(verdict(folder_ / name).find("would overwrite an input"), std::string::npos) << name;
    EXPECT_EQ(verdict(folder_ / "new"), "fine");
    EXPECT_EQ(verdict("/dev/null", "/dev/null"), "fine") << "nothing is lost there";
    EXPECT_EQ(verdict("-"), "-o -: a file named '-' is hardly meant");
    EXPECT_EQ(verdict("./-"), "fine");
}

TEST_F(OutputFilesTest, OutputsAreSeveralFiles) {
    EXPECT_EQ(verdict(folder_ / "new", folder_ / "sub/../new"),
              "-o and --csv would both write " + (folder_ / "new").string());
    std::ofstream(folder_ / "old") << "old";
    EXPECT_EQ(verdict(folder_ / "old", folder_ / "sub/../old"),
              "-o and --csv would both write " + (folder_ / "old").string());
    EXPECT_EQ(verdict(folder_ / "new", folder_ / "newer"), "fine");
    EXPECT_EQ(verdict("", ""), "fine");
    EXPECT_EQ(verdict("none/new", "none/new"), "-o and --csv would both write none/new");
}

}  // namespace
}  // namespace talpa::cli
