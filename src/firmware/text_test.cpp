#include "firmware/text.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <random>

namespace talpa::firmware {
namespace {

TEST(Text, NumbersInEveryForm) {
    Text<100> t;
    t.add("{} {} ", 0, -42).hex(0xBEEF).add(" {}", 18446744073709551615ull);
    EXPECT_EQ(t.view(), "0 -42 0x0000BEEF 18446744073709551615");
}

std::string fixed(float v, unsigned decimals) {
    Text<40> t;
    t.fixed(v, decimals);
    return std::string(t.view());
}

TEST(Text, FixedPointRoundsAndCarries) {
    EXPECT_EQ(fixed(0.873421f, 6), "0.873421");
    EXPECT_EQ(fixed(0.0f, 3), "0.000");
    EXPECT_EQ(fixed(-1.5f, 1), "-1.5");
    EXPECT_EQ(fixed(0.99999f, 2), "1.00");
    EXPECT_EQ(fixed(1.05e-3f, 6), "0.001050");
    EXPECT_EQ(fixed(0.0f / 0.0f, 2), "nan");
    EXPECT_EQ(fixed(1e30f, 2), "inf");
}

// printf of the C library, where a float has no fraction any more and it prints the exact value.
TEST(Text, LargeFixedPointNumbersAreExact) {
    std::mt19937 random(3);
    for (int i = 0; i < 2000; ++i) {
        const float v = std::ldexp(static_cast<float>(random() % 0x800000 + 0x800000), static_cast<int>(random() % 40));
        if (v >= 9.2e18f) continue;
        char expected[64];
        std::snprintf(expected, sizeof expected, "%.3f", static_cast<double>(v));
        EXPECT_EQ(fixed(v, 3), expected);
    }
}

TEST(Text, IsCutWhereItsBufferEnds) {
    Text<4> t;
    t.put("abc").add("{}", 1234);
    EXPECT_EQ(t.view(), "abc1");
}

}  // namespace
}  // namespace talpa::firmware
