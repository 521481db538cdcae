#include "cli/picture_options.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace talpa::cli {
namespace {

namespace fs = std::filesystem;

class OutputFoldersTest : public testing::Test {
  protected:
    void TearDown() override { fs::remove_all(root_); }
    fs::path root_ = fs::temp_directory_path() / ("talpa_output_folders_" + std::to_string(::getpid()));
};

TEST_F(OutputFoldersTest, EveryPictureHasAFolderOfItsOwn) {
    OutputFolders folders(root_, true);
    // The third would be numbered as the second is called.
    const std::vector<std::pair<std::string, std::string>> wanted{{"a/red.jpg", "red.jpg"},
                                                                  {"red.jpg.2", "red.jpg.2"},
                                                                  {"b/red.jpg", "red.jpg.3"},
                                                                  {"c/red.jpg.2", "red.jpg.2.2"}};
    for (const auto& [image, folder] : wanted) {
        const auto next = folders.next(image);
        ASSERT_TRUE(next && *next);
        EXPECT_EQ(**next, root_ / folder);
        EXPECT_TRUE(fs::is_directory(root_ / folder));
    }
}

TEST_F(OutputFoldersTest, OnePictureOrRawInputsUseTheFolderItself) {
    EXPECT_EQ(OutputFolders(root_, false).next("a/red.jpg").value(), root_);
}

TEST_F(OutputFoldersTest, WithoutAFolderNothingIsMade) {
    EXPECT_EQ(OutputFolders({}, true).next("red.jpg").value(), std::nullopt);
}

TEST_F(OutputFoldersTest, AFileInTheWayIsAnError) {
    OutputFolders folders("/dev/null", true);
    const auto next = folders.next("red.jpg");
    ASSERT_FALSE(next);
    EXPECT_EQ(next.error().code, ErrorCode::AccessFailed);
}

}  // namespace
}  // namespace talpa::cli
