// What Pillow 9.4 cannot judge: the run-length examples of the Windows documentation ("Bitmap Compression"), jumps and
// ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "image/bmp_rle.h"
#include "image/decode.h"

namespace talpa::image {
namespace {

using testing::HasSubstr;

/// Rows as hexadecimal digits of the indices; '.' for what was never set.
std::string rows_of(const std::vector<std::uint8_t>& code, unsigned bits, std::uint32_t width, std::uint32_t height,
                    bool complete = true) {
    BmpRleReader reader(code, bits, width, height);
    std::string all;
    std::vector<std::vector<int>> index(height, std::vector<int>(width, -1));
    while (const auto pixel = reader.next()) index.at(pixel->y).at(pixel->x) = pixel->index;
    EXPECT_EQ(reader.complete(), complete);
    for (const auto& row : index) {
        for (const int i : row) {
            const char* digits = "0123456789ABCDEF";
            if (i < 0)
                all += bits == 8 ? ".." : ".";
            else if (bits == 8)
                all += {digits[i / 16], digits[i % 16]};
            else
                all += digits[i];
        }
        all += '|';
    }
    return all;
}

TEST(BmpRle, TheExampleForEightBitsOfTheWindowsDocumentation) {
    const std::vector<std::uint8_t> code{0x03, 0x04, 0x05, 0x06, 0x00, 0x03, 0x45, 0x56, 0x67, 0x00, 0x02, 0x78,
                                         0x00, 0x02, 0x05, 0x01, 0x02, 0x78, 0x00, 0x00, 0x09, 0x1E, 0x00, 0x01};
    EXPECT_EQ(rows_of(code, 8, 20, 3),
              "0404040606060606455667"
              "7878"
              "..............|"
              "...................................."
              "7878|"
              "1E1E1E1E1E1E1E1E1E"
              "......................|");
}

TEST(BmpRle, TheExampleForFourBitsOfTheWindowsDocumentation) {
    const std::vector<std::uint8_t> code{0x03, 0x04, 0x05, 0x06, 0x00, 0x06, 0x45, 0x56, 0x67, 0x00, 0x04, 0x78,
                                         0x00, 0x02, 0x05, 0x01, 0x04, 0x78, 0x00, 0x00, 0x09, 0x1E, 0x00, 0x01};
    EXPECT_EQ(rows_of(code, 4, 28, 3),
              "040"
              "06060"
              "455667"
              "7878"
              "..........|"
              "......................."
              "7878"
              ".|"
              "1E1E1E1E1"
              "...................|");
}

TEST(BmpRle, WhatRunsOverTheEndOfARowIsDropped) {
    EXPECT_EQ(rows_of({5, 0x12, 0, 0, 0, 3, 1, 2, 3, 0, 0, 1}, 8, 2, 2), "1212|0102|");
    EXPECT_EQ(rows_of({0, 2, 200, 200, 4, 1}, 8, 2, 2), "....|....|") << "a jump out of the picture";
}

TEST(BmpRle, AnEndWithoutItsMarkIsCompleteOnlyWhenTheLastRowIsFull) {
    EXPECT_EQ(rows_of({2, 7, 0, 0, 2, 8}, 8, 2, 2), "0707|0808|");
    EXPECT_EQ(rows_of({2, 7, 0, 0, 1, 8}, 8, 2, 2, false), "0707|08..|");
    EXPECT_EQ(rows_of({2, 7, 0, 0, 0, 3, 1}, 8, 2, 2, false), "0707|....|");
}

/// A 24-bit header of 40 bytes with these fields and nothing after it but `pixels`.
std::vector<std::uint8_t> bmp(std::int32_t width, std::int32_t height, std::uint16_t bits, std::uint32_t compression,
                              std::vector<std::uint8_t> pixels) {
    std::vector<std::uint8_t> file(54);
    file[0] = 'B', file[1] = 'M';
    store_le<std::uint32_t>(&file[10], 54);
    store_le<std::uint32_t>(&file[14], 40);
    store_le<std::int32_t>(&file[18], width);
    store_le<std::int32_t>(&file[22], height);
    store_le<std::uint16_t>(&file[28], bits);
    store_le<std::uint32_t>(&file[30], compression);
    for (const std::uint8_t byte : pixels) file.push_back(byte);
    return file;
}

TEST(Bmp, RowsStandFromTheBottomOrWithANegativeHeightFromTheTop) {
    const std::vector<std::uint8_t> pixels{1, 2, 3, 0, 4, 5, 6, 0};
    EXPECT_EQ(decode(bmp(1, 2, 24, 0, pixels))->rgb, (std::vector<std::uint8_t>{6, 5, 4, 3, 2, 1}));
    EXPECT_EQ(decode(bmp(1, -2, 24, 0, pixels))->rgb, (std::vector<std::uint8_t>{3, 2, 1, 6, 5, 4}));
}

TEST(Bmp, NonsenseInTheHeaderIsNamed) {
    EXPECT_THAT(decode(bmp(-1, 2, 24, 0, {})).error().describe(), HasSubstr("negative width -1"));
    EXPECT_THAT(decode(bmp(1, INT32_MIN, 24, 0, {})).error().describe(), HasSubstr("more than the limit"));
    EXPECT_THAT(decode(bmp(1, 1, 7, 0, {})).error().describe(), HasSubstr("7 bits per pixel"));
    EXPECT_THAT(decode(bmp(1, 1, 24, 4, {})).error().describe(), HasSubstr("wrapped JPEG"));
    EXPECT_THAT(decode(bmp(1, 1, 24, 99, {})).error().describe(), HasSubstr("compression 99"));
    EXPECT_THAT(decode(bmp(1000, 1000, 24, 0, {})).error().describe(),
                HasSubstr("cut short: the data end after row 0 of 1000"));
    auto gaps = bmp(1, 1, 32, 3, std::vector<std::uint8_t>(16, 0x55));
    EXPECT_THAT(decode(gaps).error().describe(), HasSubstr("has gaps"));
    auto header = bmp(1, 1, 24, 0, {});
    header[14] = 41;
    EXPECT_THAT(decode(header).error().describe(), HasSubstr("unknown header of 41 bytes"));
}

}  // namespace
}  // namespace talpa::image
