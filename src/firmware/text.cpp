#include "firmware/text.h"

#include <bit>

namespace talpa::firmware {

TextBuffer& TextBuffer::put(std::string_view text) {
    for (const char c : text)
        if (used_ < memory_.size()) memory_[used_++] = c;
    return *this;
}

TextBuffer& TextBuffer::put(const char* text) {
    return put(std::string_view(text));
}

TextBuffer& TextBuffer::hex(std::uint32_t value) {
    std::array<char, 10> text{'0', 'x'};
    for (std::size_t i = 0; i < 8; ++i) text[2 + i] = "0123456789ABCDEF"[(value >> (28 - 4 * i)) & 0xF];
    return put({text.data(), text.size()});
}

// By bits where a float has no fraction any more: the M33 would bring a library of double arithmetic to convert one to
// 64 bits.
TextBuffer& TextBuffer::fixed(float value, unsigned decimals) {
    constexpr float kNoFraction = 8388608.0f;  // 2^23
    if (value != value) return put("nan");
    if (value < 0) {
        put("-");
        value = -value;
    }
    if (value >= 9.2e18f) return put("inf");
    std::uint64_t whole = 0;
    std::uint32_t fraction = 0;
    if (value >= kNoFraction) {
        const auto bits = std::bit_cast<std::uint32_t>(value);
        whole = std::uint64_t{(bits & 0x7FFFFF) | 0x800000} << ((bits >> 23) - 150);
    } else {
        std::uint32_t scale = 1;
        for (unsigned i = 0; i < decimals; ++i) scale *= 10;
        const auto floor = static_cast<std::uint32_t>(value);
        fraction = static_cast<std::uint32_t>((value - static_cast<float>(floor)) * static_cast<float>(scale) + 0.5f);
        whole = floor;
        if (fraction >= scale) {
            fraction -= scale;
            ++whole;
        }
    }
    add("{}.", static_cast<unsigned long long>(whole));
    std::array<char, 9> digits{};
    for (unsigned i = decimals; i-- > 0; fraction /= 10) digits[i] = static_cast<char>('0' + fraction % 10);
    return put({digits.data(), decimals});
}

}  // namespace talpa::firmware
