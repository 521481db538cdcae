#include "pte/host/file_hint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/host/file.h"
#include "base/host/testing.h"
#include "pte/program.h"

namespace talpa::pte::host {
namespace {

using ::testing::HasSubstr;

std::string hint(std::string text, std::string_view message = "") {
    text.resize(std::max<std::size_t>(text.size(), 64));
    return file_hint({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}, message);
}

TEST(FileHint, OtherFormatsAreNamed) {
    EXPECT_EQ(hint(std::string("\x1C\0\0\0TFL3", 8)),
              "it is a TensorFlow Lite model (.tflite); talpa compile makes a program of it");
    EXPECT_THAT(hint("PK\3\4"), HasSubstr(".pt2"));
    EXPECT_THAT(hint("PK\3\4"), HasSubstr("talpa compile"));
    // ir_version 8, producer_name "pytorch"; and a file that begins with its graph.
    EXPECT_THAT(hint("\x08\x08\x12\x07pytorch"), HasSubstr("ONNX"));
    EXPECT_THAT(hint("\x08\x0A\x3A\x80\x01"), HasSubstr("ONNX"));
    EXPECT_THAT(hint("\x7F"
                     "ELF\1\1\1"),
                HasSubstr("an ELF file"));
    for (const std::string& picture : {std::string("\xFF\xD8\xFF\xE0"), std::string("\x89PNG\r\n\x1A\n"),
                                       std::string("GIF89a"), std::string("BM\x8A\x0A\x08\0\0\0\0\0", 10)})
        EXPECT_THAT(hint(picture), HasSubstr("picture; talpa run PROGRAM.pte --image FILE takes it as input"))
            << picture;
    EXPECT_EQ(hint("BMW 2002 tii"), "");
    EXPECT_THAT(hint("version https://git-lfs.github.com/spec/v1\noid sha256:0"), HasSubstr("git lfs pull"));
    EXPECT_THAT(hint("<!DOCTYPE html>\n<html>"), HasSubstr("a web page, as a server answers instead of a file"));
    EXPECT_EQ(hint("no known format"), "");
}

// Real files, where the reference set is present.
TEST(FileHint, RealModelsAreNamed) {
    TALPA_NEEDS_REFERENCE();
    const auto first_bytes = [](const std::filesystem::path& path) { return talpa::host::read_file(path).value(); };
    EXPECT_THAT(file_hint(first_bytes(reference / "tflite/tf2_mobilenet_v2_1.0_224_ptq.tflite"), ""),
                HasSubstr("TensorFlow Lite"));
    EXPECT_THAT(file_hint(first_bytes(reference / "ops/linear/linear.float.pt2"), ""), HasSubstr(".pt2"));
}

TEST(FileHint, AProgramCutShortIsSaidToBe) {
    const auto whole = talpa::host::read_file(talpa::testing::golden_folder() / "ops/linear/linear.pte").value();
    const auto half = talpa::host::MappedFile::open(talpa::testing::golden_folder() / "ops/linear/linear.pte").value();
    const Bytes cut = half.bytes().first(whole.size() / 2);
    const auto program = Program::open(cut);
    ASSERT_FALSE(program);
    std::array<char, 300> text;
    EXPECT_THAT(file_hint(cut, program.error().render(text)), HasSubstr("only a part of the file is here"));
}

}  // namespace
}  // namespace talpa::pte::host
