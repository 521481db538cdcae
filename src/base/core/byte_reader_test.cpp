#include "base/core/byte_reader.h"

#include <gtest/gtest.h>

#include <array>

namespace talpa {
namespace {

constexpr std::array<std::uint8_t, 8> kBytes{0x01, 0x02, 0x03, 0x84, 0xFF, 0xFF, 0xFF, 0xFF};

TEST(ByteReader, ReadsLittleEndianAtAnyOffset) {
    const ByteReader reader{kBytes};
    EXPECT_EQ(reader.at<std::uint32_t>(0).value(), 0x84030201u);
    EXPECT_EQ(reader.at<std::uint16_t>(1).value(), 0x0302u);
    EXPECT_EQ(reader.at<std::int32_t>(4).value(), -1);
}

TEST(ByteReader, RefusesReadsThatCrossTheEnd) {
    const ByteReader reader{kBytes};
    EXPECT_FALSE(reader.at<std::uint32_t>(5));
    EXPECT_FALSE(reader.at<std::uint8_t>(8));
    EXPECT_FALSE(reader.slice(UINT64_MAX, 2)) << "offset + size overflows";
    EXPECT_TRUE(reader.slice(8, 0));
}

TEST(CheckedMath, OverflowIsAnAnswer) {
    EXPECT_FALSE(checked_mul<std::int64_t>(INT64_MAX, 2));
    EXPECT_EQ(checked_add<std::uint32_t>(1, 2), 3u);
    EXPECT_FALSE(ranges_overlap(0, 16, 16, 16));
    EXPECT_TRUE(ranges_overlap(0, 17, 16, 16));
    EXPECT_FALSE(ranges_overlap(5, 0, 0, 16));
}

}  // namespace
}  // namespace talpa
