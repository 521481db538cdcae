#include "inspect/printable.h"

#include <gtest/gtest.h>

namespace talpa::inspect {
namespace {

TEST(Printable, OrdinaryTextStays) {
    EXPECT_EQ(printable("conv_1/weights – größe 3×3 模型"), "conv_1/weights – größe 3×3 模型");
}

TEST(Printable, NothingReachesTheTerminalThatCouldSteerIt) {
    EXPECT_EQ(printable("a\x1b[2Jb\r\n\t"), "a\\x1b[2Jb\\x0d\\x0a\\x09");
    EXPECT_EQ(printable("\x7f\xc2\x9b"
                        "31m"),
              "\\x7f\\u{9b}31m");  // C1 control sequence introducer
    EXPECT_EQ(printable("\xe2\x80\xae"
                        "evil"),
              "\\u{202e}evil");                               // right-to-left override
    EXPECT_EQ(printable("\xff\xc0\xaf"), "\\xff\\xc0\\xaf");  // no UTF-8, an overlong slash
    EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
    EXPECT_EQ(printable("\xe2\x82"), "\\xe2\\x82");           // cut short
}

TEST(Printable, Numbers) {
    EXPECT_EQ(grouped(0), "0");
    EXPECT_EQ(grouped(999), "999");
    EXPECT_EQ(grouped(1000), "1,000");
    EXPECT_EQ(grouped(3469760), "3,469,760");
    EXPECT_EQ(size_text(512), "512 B");
    EXPECT_EQ(size_text(3 * 1024 * 1024 + 512 * 1024), "3.5 MiB");
}

TEST(Printable, CutsAtCodePoints) {
    EXPECT_EQ(fitted("größer", 10), "größer");
    EXPECT_EQ(fitted("größer", 4), "grö…");
    EXPECT_EQ(columns("grö…"), 4u);
}

}  // namespace
}  // namespace talpa::inspect
