#include "base/core/packed_sentence.h"

#include <gtest/gtest.h>

#include <string>

namespace talpa::detail {
namespace {

template <Literal S>
std::string unpacked() {
    std::string text;
    for (const char c : PackedSentence<S>::kText)
        if (c != '\0') unpack(static_cast<std::uint8_t>(c), [&](char plain) { text += plain; });
    return text;
}

TEST(PackedSentence, ComesBackAsItWas) {
    EXPECT_EQ(unpacked<"delegate {}: the command stream reaches {} bytes into region {}, {} has {}">(),
              "delegate {}: the command stream reaches {} bytes into region {}, {} has {}");
    EXPECT_EQ(unpacked<"">(), "");
    EXPECT_EQ(unpacked<"Zq~|%">(), "Zq~|%");
    EXPECT_EQ(unpacked<"{}{}{}">(), "{}{}{}");
}

TEST(PackedSentence, IsHalfAsLongOnTheSentencesItWasMadeFor) {
    using Sentence = PackedSentence<"delegate {}: the command stream reaches {} bytes into region {}, {} has {}">;
    EXPECT_LT(Sentence::kText.size(), 38u);
}

TEST(PackedSentence, EveryCodeUnpacksToMoreThanOneCharacter) {
    for (unsigned code = 128; code < 128 + std::size(kSentencePairs); ++code) {
        std::string text;
        unpack(static_cast<std::uint8_t>(code), [&](char c) { text += c; });
        EXPECT_GE(text.size(), 2u) << code;
        for (const char c : text) EXPECT_TRUE(c >= 0x20 && c < 0x7F) << code;
    }
}

}  // namespace
}  // namespace talpa::detail
