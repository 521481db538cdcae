// The small pictures that are read here are the fuzz target's seeds, made by Pillow (tests/make_pictures.py).
#include "image/decode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>

#include "base/host/file.h"

namespace talpa::image {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

fs::path folder() {
    return fs::path(TALPA_SOURCE_DIR) / "tests" / "corpus" / "image_fuzz";
}
std::vector<std::uint8_t> bytes_of(std::string_view name) {
    return host::read_file(folder() / name).value();
}

enum class Hue { Red, Green, Blue, Black, Other };
Hue hue(const Picture& p, std::uint32_t x, std::uint32_t y) {
    const std::uint8_t* c = p.row(y) + std::size_t{x} * 3;
    const auto is = [&](int r, int g, int b) {
        return std::abs(c[0] - r) < 40 && std::abs(c[1] - g) < 40 && std::abs(c[2] - b) < 40;
    };
    return is(255, 0, 0)   ? Hue::Red
           : is(0, 255, 0) ? Hue::Green
           : is(0, 0, 255) ? Hue::Blue
           : is(0, 0, 0)   ? Hue::Black
                           : Hue::Other;
}

// Stored: red at the top left, green at the top right, blue at the bottom left, black at the bottom right. Where these
// are seen, clockwise from the top left, follows from what Exif 2.32 says of rows and columns.
TEST(Decode, EachExifOrientationIsTurnedUpright) {
    using enum Hue;
    const std::array<std::array<Hue, 4>, 8> seen = {{
        {Red, Green, Black, Blue},  // 1: row 0 is the top, column 0 the left side
        {Green, Red, Blue, Black},  // 2: top, right
        {Black, Blue, Red, Green},  // 3: bottom, right
        {Blue, Black, Green, Red},  // 4: bottom, left
        {Red, Blue, Black, Green},  // 5: left, top
        {Blue, Red, Green, Black},  // 6: right, top
        {Black, Green, Red, Blue},  // 7: right, bottom
        {Green, Black, Blue, Red},  // 8: left, bottom
    }};
    for (unsigned o = 1; o <= 8; ++o) {
        const auto picture = decode(bytes_of("orientation_" + std::to_string(o) + ".jpg"));
        ASSERT_TRUE(picture) << picture.error().describe();
        EXPECT_EQ(picture->width, o < 5 ? 32u : 16u);
        EXPECT_EQ(picture->height, o < 5 ? 16u : 32u);
        const std::uint32_t right = picture->width - 4, bottom = picture->height - 4;
        const std::array<Hue, 4> got{hue(*picture, 3, 3), hue(*picture, right, 3), hue(*picture, right, bottom),
                                     hue(*picture, 3, bottom)};
        EXPECT_EQ(got, seen[o - 1]) << "orientation " << o;
    }
}

TEST(Decode, RedIsRedInRgbAndInCmyk) {
    for (const char* name : {"red.jpg", "red_cmyk.jpg"}) {
        const auto picture = decode(bytes_of(name));
        ASSERT_TRUE(picture) << picture.error().describe();
        EXPECT_EQ(picture->width, 16u);
        EXPECT_EQ(picture->height, 8u);
        EXPECT_EQ(hue(*picture, 8, 4), Hue::Red) << name;
    }
}

TEST(Decode, PicturesOf400MegapixelsAreRefusedByTheirHeader) {
    for (const char* name : {"huge.jpg", "huge.png", "huge.webp", "huge.bmp", "huge_rle.bmp"}) {
        const auto picture = decode(bytes_of(name));
        ASSERT_FALSE(picture) << name;
        EXPECT_EQ(picture.error().code, ErrorCode::OutOfResources) << name;
        EXPECT_THAT(picture.error().describe(), HasSubstr("20000 x 20000 pixels, more than the limit of 100 million"))
            << name;
    }
}

TEST(Decode, LimitsAreTheCallers) {
    const auto file = bytes_of("red.jpg");
    EXPECT_TRUE(decode(file, {.max_pixels = 16 * 8}));
    EXPECT_EQ(decode(file, {.max_pixels = 16 * 8 - 1}).error().code, ErrorCode::OutOfResources);
    EXPECT_EQ(decode(file, {.max_file_bytes = file.size() - 1}).error().code, ErrorCode::OutOfResources);
}

TEST(Decode, PicturesWithoutPixelsAreRefused) {
    EXPECT_THAT(decode(bytes_of("empty_size.bmp")).error().describe(), HasSubstr("0 x 5 pixels"));
    EXPECT_EQ(decode(bytes_of("empty_size.png")).error().code, ErrorCode::InvalidPicture);
}

// Everything but the trailing marks of a file is needed: cut anywhere else, it is an error that says so, and no half
// picture.
TEST(Decode, FilesCutShortAreErrors) {
    std::size_t files = 0;
    for (const auto& entry : fs::directory_iterator(folder())) {
        const auto file = host::read_file(entry.path()).value();
        if (!decode(file)) continue;
        ++files;
        for (std::size_t size = 0; size + 16 < file.size(); size += size < 64 ? 1 : 7) {
            const auto picture = decode(Bytes(file).first(size));
            ASSERT_FALSE(picture) << entry.path() << " cut to " << size << " of " << file.size();
            EXPECT_EQ(picture.error().code, ErrorCode::InvalidPicture)
                << entry.path() << " " << picture.error().describe();
        }
    }
    EXPECT_GT(files, 40u);
}

TEST(Decode, OtherFilesAreNamed) {
    const auto refusal = [](std::string_view text) {
        return decode(Bytes(reinterpret_cast<const std::uint8_t*>(text.data()), text.size())).error().describe();
    };
    EXPECT_THAT(refusal(std::string_view("II*\0 and more", 13)), HasSubstr("this is a TIFF"));
    EXPECT_THAT(refusal("GIF89a"), HasSubstr("GIF: cut short"));
    EXPECT_THAT(refusal("\x1A\x1A\x1A\x1A"
                        "ftypavif"),
                HasSubstr("an AVIF picture"));
    EXPECT_THAT(refusal(""), HasSubstr("the file is empty"));
    EXPECT_THAT(refusal("hello"), HasSubstr("begins with 68 65 6C 6C 6F"));
}

TEST(Decode, AFrameSmallerThanItsCanvasStandsOnBlack) {
    const auto picture = decode(bytes_of("red_frame_on_canvas.webp"));
    ASSERT_TRUE(picture) << picture.error().describe();
    EXPECT_EQ(picture->width, 9u);
    EXPECT_EQ(picture->height, 7u);
    EXPECT_EQ(hue(*picture, 8, 6), Hue::Black);
}

}  // namespace
}  // namespace talpa::image
