// A line of text in a fixed buffer, for replies and the trace: no heap, no printf. What does not fit is cut.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/core/error.h"

namespace talpa::firmware {

/// Text in memory that somebody else has.
class TextBuffer {
  public:
    explicit TextBuffer(std::span<char> memory) : memory_(memory) {}
    TextBuffer(const TextBuffer&) = delete;
    TextBuffer& operator=(const TextBuffer&) = delete;

    TextBuffer& put(std::string_view text);
    [[gnu::noinline]] TextBuffer& put(const char* text);
    /// A sentence with {} for each argument, as an error has it. What is not printable becomes '?'.
    template <typename... Args>
    TextBuffer& add(const char* sentence, const Args&... args) {
        used_ += format_text(memory_.subspan(used_), sentence, args...);
        return *this;
    }
    /// 0x and eight digits.
    TextBuffer& hex(std::uint32_t value);
    /// Fixed point with `decimals` (1..9) digits, rounded half away from zero; "nan", "inf", and up to 2^63 in
    /// magnitude.
    TextBuffer& fixed(float value, unsigned decimals);

    [[nodiscard]] std::string_view view() const { return {memory_.data(), used_}; }
    void clear() { used_ = 0; }

  private:
    std::span<char> memory_;
    std::size_t used_ = 0;
};

template <std::size_t Capacity>
class Text : public TextBuffer {
  public:
    Text() : TextBuffer(buffer_) {}

  private:
    std::array<char, Capacity> buffer_;  // as it was: only what `view` shows has been written
};

}  // namespace talpa::firmware
