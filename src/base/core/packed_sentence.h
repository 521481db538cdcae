// Sentences of errors as the firmware carries them: packed to less than half when compiled, by a table of frequent
// pairs of characters (byte pair encoding), since they would be a quarter of its code TCM. A text without codes above
// 127 is its own packed form. Used where TALPA_COMPACT_ERRORS is defined, and by its test.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/core/sentence_pairs.h"

namespace talpa::detail {

/// A string literal as a template argument.
template <std::size_t N>
struct Literal {
    char text[N]{};
    consteval Literal(const char (&from)[N]) {  // NOLINT(google-explicit-constructor)
        for (std::size_t i = 0; i < N; ++i) text[i] = from[i];
    }
};

template <std::size_t N>
struct PackedText {
    char text[N]{};
    std::size_t size = 0;  ///< NUL included
};

template <std::size_t N>
consteval PackedText<N> pack(const char (&from)[N]) {
    PackedText<N> packed;
    for (const char c : from) packed.text[packed.size++] = c;
    std::uint8_t code = 128;
    for (const SentencePair& pair : kSentencePairs) {  // in this order: later pairs are of earlier codes
        std::size_t out = 0;
        for (std::size_t i = 0; i < packed.size; ++i) {
            const bool both = i + 1 < packed.size && static_cast<std::uint8_t>(packed.text[i]) == pair.first &&
                              static_cast<std::uint8_t>(packed.text[i + 1]) == pair.second;
            packed.text[out++] = both ? static_cast<char>(code) : packed.text[i];
            i += both;
        }
        packed.size = out;
        ++code;
    }
    return packed;
}

template <Literal S>
struct PackedSentence {
    static constexpr auto kWhole = pack(S.text);
    static constexpr std::array<char, kWhole.size> kText = [] {
        std::array<char, kWhole.size> cut{};
        for (std::size_t i = 0; i < cut.size(); ++i) cut[i] = kWhole.text[i];
        return cut;
    }();
};

/// Hands the characters that `code` stands for to `put(char)`, in order.
template <typename Put>
void unpack(std::uint8_t code, Put&& put) {
    // Depth first with what is still to come on a stack: codes are of lower codes, so 128 are enough, and few are used.
    std::array<std::uint8_t, 24> later;
    std::size_t waiting = 0;
    for (;;) {
        while (code >= 128) {
            later[waiting++] = kSentencePairs[code - 128].second;
            code = kSentencePairs[code - 128].first;
        }
        put(static_cast<char>(code));
        if (waiting == 0) return;
        code = later[--waiting];
    }
}

/// Most codes that wait at a time, over the whole table: `unpack` has room for them.
consteval std::size_t unpack_depth() {
    std::size_t deepest = 0;
    std::array<std::size_t, 256> depth{};
    for (std::size_t i = 0; i < std::size(kSentencePairs); ++i) {
        const std::size_t first = depth[kSentencePairs[i].first] + 1, second = depth[kSentencePairs[i].second];
        depth[128 + i] = first > second ? first : second;
        deepest = depth[128 + i] > deepest ? depth[128 + i] : deepest;
    }
    return deepest;
}
static_assert(std::size(kSentencePairs) <= 128 && unpack_depth() <= 24);

}  // namespace talpa::detail
