#include "base/core/error.h"

#include <cstdarg>

namespace talpa {
namespace {

class Sink {
  public:
    explicit Sink(std::span<char> out) : out_(out) {}

    void put(char c) {
        if (used_ < out_.size()) out_[used_++] = c;
    }
    void put(std::string_view text) {
        for (char c : text) put(c);
    }
    /// value /= base, returning the remainder; by 16-bit pieces, for the M33 would bring a library to divide 64-bit
    /// numbers.
    static unsigned divide(std::uint64_t& value, unsigned base) {
        std::uint32_t rest = 0;
        std::uint64_t quotient = 0;
        for (int shift = 48; shift >= 0; shift -= 16) {
            const std::uint32_t piece = rest << 16 | static_cast<std::uint32_t>(value >> shift & 0xFFFF);
            quotient = quotient << 16 | piece / base;
            rest = piece % base;
        }
        value = quotient;
        return rest;
    }
    void put_number(std::uint64_t value, unsigned base) {
        char digits[20];
        std::size_t n = 0;
        do {
            digits[n++] = "0123456789abcdef"[divide(value, base)];
        } while (value != 0);
        while (n > 0) put(digits[--n]);
    }
    [[nodiscard]] std::string_view written() const { return {out_.data(), used_}; }

  private:
    std::span<char> out_;
    std::size_t used_ = 0;
};

void put_arg(Sink& sink, const ErrorArg& arg) {
    switch (arg.kind) {
        case ErrorArg::Kind::Text:
            // Bytes of a stranger's file: nothing that could drive a terminal gets through.
            for (char c : arg.text) sink.put(c >= 0x20 && c < 0x7F ? c : '?');
            return;
        case ErrorArg::Kind::Hex:
            sink.put("0x");
            sink.put_number(arg.number, 16);
            return;
        case ErrorArg::Kind::Unsigned:
            sink.put_number(arg.number, 10);
            return;
        case ErrorArg::Kind::Signed: {
            const bool negative = static_cast<std::int64_t>(arg.number) < 0;
            if (negative) sink.put('-');
            sink.put_number(negative ? ~arg.number + 1 : arg.number, 10);
            return;
        }
    }
}

}  // namespace

std::unexpected<Error> detail::make_failure(std::uint32_t code_and_kinds, const char* sentence, ...) {
    Error error;
    error.code = static_cast<ErrorCode>(code_and_kinds & 0xFF);
    error.sentence = sentence;
    std::va_list args;
    va_start(args, sentence);
    for (std::uint32_t kinds = code_and_kinds >> 8; kinds != 0; kinds >>= 3) {
        ErrorArg& arg = error.args[error.arg_count++];
        switch (static_cast<Passed>(kinds & 7)) {
            case Passed::None:
                break;
            case Passed::Signed32:
                arg = va_arg(args, std::int32_t);
                break;
            case Passed::Unsigned32:
                arg = va_arg(args, std::uint32_t);
                break;
            case Passed::Signed64:
                arg = va_arg(args, std::int64_t);
                break;
            case Passed::Unsigned64:
                arg = va_arg(args, std::uint64_t);
                break;
            case Passed::Text: {
                const auto text = va_arg(args, PassedText);
                arg = std::string_view(text.data, text.size);
                break;
            }
            case Passed::Literal:
                arg = va_arg(args, const char*);
                break;
            case Passed::Whole:
                arg = *va_arg(args, const ErrorArg*);
                break;
        }
    }
    va_end(args);
    return std::unexpected<Error>(error);
}

std::string_view Error::render(std::span<char> out) const {
    Sink sink(out);
    std::size_t next = 0;
    for (const char* p = sentence; *p != '\0'; ++p) {
        if (p[0] == '{' && p[1] == '}') {
            ++p;
            if (next < arg_count) put_arg(sink, args[next++]);
        } else {
            sink.put(*p);
        }
    }
    return sink.written();
}

}  // namespace talpa
