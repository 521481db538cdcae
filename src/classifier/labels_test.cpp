#include "classifier/labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/host/file.h"

namespace talpa::classifier {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class LabelsTest : public testing::Test {
  protected:
    fs::path write(std::string_view text) {
        EXPECT_TRUE(host::write_text(path_, text));
        return path_;
    }
    void TearDown() override { fs::remove(path_); }
    fs::path path_ = fs::temp_directory_path() / ("talpa_labels_test_" + std::to_string(::getpid()));
};

TEST_F(LabelsTest, LinesAreLabelsWhateverTheirEnds) {
    const auto labels = Labels::read(write("\xEF\xBB\xBFtench\r\ngoldfish\n\nhen\n\n\n"), 0).value();
    EXPECT_EQ(labels.size(), 4u);
    EXPECT_EQ(labels.of(0), "tench");
    EXPECT_EQ(labels.of(1), "goldfish");
    EXPECT_EQ(labels.of(2), "");
    EXPECT_EQ(labels.of(3), "hen");
    EXPECT_EQ(labels.of(4), "");
}

TEST_F(LabelsTest, AnOffsetMovesTheLines) {
    const auto background = Labels::read(write("tench\ngoldfish"), -1).value();
    EXPECT_EQ(background.of(0), "");
    EXPECT_EQ(background.of(2), "goldfish");
    EXPECT_TRUE(background.check_enough_for(3));
    EXPECT_EQ(Labels::read(write("background\ntench"), 1).value().of(0), "tench");
}

TEST_F(LabelsTest, TooFewLabelsAreAnErrorThatSaysHowMany) {
    const auto labels = Labels::read(write("a\nb\nc"), 0).value();
    EXPECT_TRUE(labels.check_enough_for(3));
    const auto one_missing = labels.check_enough_for(4).error().describe();
    EXPECT_THAT(one_missing, HasSubstr("has 3 labels, and the output has 4 classes"));
    EXPECT_THAT(one_missing, HasSubstr("--label-offset -1"));
    EXPECT_THAT(labels.check_enough_for(1000).error().describe(), HasSubstr("is it the label file of this network?"));
}

TEST_F(LabelsTest, AnOffsetThatLeavesLabelsUnusedIsAnError) {
    const auto error = Labels::read(write("a\nb\nc"), -2).value().check_enough_for(3).error().describe();
    EXPECT_THAT(error, HasSubstr("has 3 labels, and with a label offset of -2 only 1 of the 3 classes get one"));
    EXPECT_TRUE(Labels::read(write("a\nb\nc"), -2).value().check_enough_for(5));
    EXPECT_TRUE(Labels::read(write("a\nb\nc"), 0).value().check_enough_for(2));
}

TEST_F(LabelsTest, OneForEachClassAndNoneBeside) {
    EXPECT_TRUE(Labels::read(write("a\nb\nc"), 0).value().one_for_each(3));
    EXPECT_FALSE(Labels::read(write("a\nb\nc"), 0).value().one_for_each(2));
    EXPECT_FALSE(Labels::read(write("a\nb\nc"), 0).value().one_for_each(4));
    EXPECT_TRUE(Labels::read(write("a\nb\nc"), -1).value().one_for_each(4)) << "class 0 has no line";
    EXPECT_TRUE(Labels::read(write("background\nb\nc"), 1).value().one_for_each(2));
    EXPECT_FALSE(Labels().one_for_each(3));
}

TEST_F(LabelsTest, WhatIsNoTextIsRefused) {
    EXPECT_THAT(Labels::read(write("a\nb\x1B[31m"), 0).error().describe(),
                HasSubstr("line 2 holds control characters"));
    EXPECT_THAT(Labels::read(write("\n\n"), 0).error().describe(), HasSubstr("has no labels"));
    EXPECT_EQ(Labels::read(path_.string() + ".none", 0).error().code, ErrorCode::NotFound);
}

TEST_F(LabelsTest, MoreLinesThanClassesAreDoubtful) {
    const auto labels = Labels::read(write("a\nb\nc"), 0).value();
    EXPECT_EQ(labels.doubt(3), "");
    EXPECT_THAT(labels.doubt(2), HasSubstr("has 3 labels, and the output has 2 classes: is it the label file"));
    EXPECT_THAT(labels.doubt(0), HasSubstr("no output scores classes"));
    EXPECT_EQ(Labels::read(path_, 1).value().doubt(2), "") << "line 0 is before the first class";
    EXPECT_THAT(Labels::read(path_, 1).value().doubt(1), HasSubstr("has 3 labels"));
    EXPECT_EQ(Labels().doubt(0), "") << "none were given";
}

}  // namespace
}  // namespace talpa::classifier
