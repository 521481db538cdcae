// A line of text in a fixed buffer, for replies and the trace: no heap, no printf. What does not fit is cut.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace talpa::firmware {

template <std::size_t Capacity>
class Text {
  public:
    Text& put(std::string_view text) {
        for (const char c : text)
            if (used_ < Capacity) buffer_[used_++] = c;
        return *this;
    }
    Text& number(std::uint64_t value) { return digits(value, 10, 1); }
    Text& signed_number(std::int64_t value) {
        if (value < 0) put("-");
        return number(value < 0 ? ~static_cast<std::uint64_t>(value) + 1 : static_cast<std::uint64_t>(value));
    }
    Text& hex(std::uint32_t value) {
        put("0x");
        return digits(value, 16, 8);
    }
    /// Fixed point with `decimals` (1..9) digits, rounded half away from zero; "nan", "inf", and up to 2^63 in
    /// magnitude.
    Text& fixed(float value, unsigned decimals) {
        if (value != value) return put("nan");
        if (value < 0) {
            put("-");
            value = -value;
        }
        if (value >= 9.2e18f) return put("inf");
        auto whole = static_cast<std::uint64_t>(value);
        std::uint32_t scale = 1;
        for (unsigned i = 0; i < decimals; ++i) scale *= 10;
        auto fraction =
            static_cast<std::uint32_t>((value - static_cast<float>(whole)) * static_cast<float>(scale) + 0.5f);
        if (fraction >= scale) {
            fraction -= scale;
            ++whole;
        }
        return number(whole).put(".").digits(fraction, 10, decimals);
    }

    [[nodiscard]] std::string_view view() const { return {buffer_.data(), used_}; }
    void clear() { used_ = 0; }

  private:
    Text& digits(std::uint64_t value, unsigned base, unsigned at_least) {
        std::array<char, 20> reversed{};
        std::size_t n = 0;
        do {
            reversed[n++] = "0123456789ABCDEF"[value % base];
            value /= base;
        } while (value != 0);
        for (std::size_t i = n; i < at_least; ++i) put("0");
        while (n > 0) put({&reversed[--n], 1});
        return *this;
    }

    std::array<char, Capacity> buffer_{};
    std::size_t used_ = 0;
};

}  // namespace talpa::firmware
