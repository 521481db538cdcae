#include "firmware/text.h"

#include <gtest/gtest.h>

namespace talpa::firmware {
namespace {

TEST(Text, NumbersInEveryForm) {
    Text<100> t;
    t.number(0).put(" ").signed_number(-42).put(" ").hex(0xBEEF).put(" ").number(18446744073709551615ull);
    EXPECT_EQ(t.view(), "0 -42 0x0000BEEF 18446744073709551615");
}

TEST(Text, FixedPointRoundsAndCarries) {
    const auto fixed = [](float v, unsigned decimals) {
        Text<40> t;
        t.fixed(v, decimals);
        return std::string(t.view());
    };
    EXPECT_EQ(fixed(0.873421f, 6), "0.873421");
    EXPECT_EQ(fixed(0.0f, 3), "0.000");
    EXPECT_EQ(fixed(-1.5f, 1), "-1.5");
    EXPECT_EQ(fixed(0.99999f, 2), "1.00");
    EXPECT_EQ(fixed(1.05e-3f, 6), "0.001050");
    EXPECT_EQ(fixed(0.0f / 0.0f, 2), "nan");
    EXPECT_EQ(fixed(1e30f, 2), "inf");
}

TEST(Text, IsCutWhereItsBufferEnds) {
    Text<4> t;
    t.put("abc").number(1234);
    EXPECT_EQ(t.view(), "abc1");
}

}  // namespace
}  // namespace talpa::firmware
