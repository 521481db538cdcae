#include "base/host/printable.h"

#include <gtest/gtest.h>

namespace talpa::host {
namespace {

TEST(Printable, OrdinaryTextStays) {
    EXPECT_EQ(printable("conv_1/weights – größe 3×3 模型"), "conv_1/weights – größe 3×3 模型");
    EXPECT_EQ(printable("größe\t3×3\n模型", LineEnds::Keep), "größe\t3×3\n模型");
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

// Joiners, fillers, the soft hyphen: two names that differ in them alone must not look alike. Prose may need them.
TEST(Printable, NamesThatDifferLookDifferent) {
    for (const char* unseen : {"\u00ad", "\u034f", "\u115f", "\u180e", "\u200b", "\u200d", "\u3164", "\uffa0"}) {
        EXPECT_NE(printable(std::string("a") + unseen).find("\\u{"), std::string::npos) << printable(unseen);
        EXPECT_EQ(printable(unseen, LineEnds::Keep), unseen);
    }
    EXPECT_EQ(printable("a\u200b"), "a\\u{200b}");
}

TEST(Printable, InProseAQuestionMarkStandsForIt) {
    EXPECT_EQ(printable("a\x1b[2Jb\x07\x7f\r\n", LineEnds::Keep), "a?[2Jb???\n");
    EXPECT_EQ(printable("ü\xC2\x9B"
                        "31m\xE2\x80\xAE"
                        "x\xff\xEF\xBB\xBF",
                        LineEnds::Keep),
              "ü?31m?x??");
    EXPECT_EQ(printable("\nfirst\r\n\nsecond\rthird\n", LineEnds::Replace), "first; second?third");
}

TEST(Printable, TellsUtf8) {
    EXPECT_TRUE(is_utf8(""));
    EXPECT_TRUE(is_utf8("größe 模型 \xf4\x8f\xbf\xbf"));  // U+10FFFF, the last one
    for (const char* broken : {"\x80", "\xe2\x82", "\xc0\xaf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80"})
        EXPECT_FALSE(is_utf8(broken));
    EXPECT_EQ(utf8_length("ü!"), 2u);
    EXPECT_EQ(utf8_length("\xffü"), 0u);
    EXPECT_EQ(utf8_length(""), 0u);
}

}  // namespace
}  // namespace talpa::host
