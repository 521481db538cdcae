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

/// In `number` of a text that was given as a literal: it may be packed. Bytes of a program never count as that.
constexpr std::uint64_t kOurs = 1;

void put_sentence(Sink& sink, const char* sentence, std::span<const ErrorArg> args);

void put_arg(Sink& sink, const ErrorArg& arg) {
    switch (arg.kind) {
        case ErrorArg::Kind::Text:
            if (arg.number == kOurs) return put_sentence(sink, arg.text.data(), {});
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

/// The arguments as make_failure passes them; how many there are.
std::uint8_t take_arguments(std::array<ErrorArg, Error::kMaxArgs>& to, std::uint32_t kinds, std::va_list args) {
    using detail::Passed;
    std::uint8_t count = 0;
    for (; kinds != 0; kinds >>= 3) {
        ErrorArg& arg = to[count++];
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
            case Passed::Text:
                arg = *va_arg(args, const std::string_view*);
                break;
            case Passed::Literal:
                arg = va_arg(args, const char*);
                arg.number = kOurs;
                break;
            case Passed::Whole:
                arg = *va_arg(args, const ErrorArg*);
                break;
        }
    }
    return count;
}

void put_sentence(Sink& sink, const char* sentence, std::span<const ErrorArg> args) {
    std::size_t next = 0;
    bool opened = false;  // '{' came, and what follows it has not yet
    const auto put = [&](char c) {
        if (opened && c == '}') {
            if (next < args.size()) put_arg(sink, args[next++]);
            opened = false;
            return;
        }
        if (opened) sink.put('{');
        opened = c == '{';
        if (!opened) sink.put(c);
    };
    for (const char* p = sentence; *p != '\0'; ++p) {
#ifdef TALPA_COMPACT_ERRORS
        detail::unpack(static_cast<std::uint8_t>(*p), put);
#else
        put(*p);
#endif
    }
    if (opened) sink.put('{');
}

std::string_view render_sentence(std::span<char> out, const char* sentence, std::span<const ErrorArg> args) {
    Sink sink(out);
    put_sentence(sink, sentence, args);
    return sink.written();
}

}  // namespace

std::size_t detail::format_passed(std::span<char> out, std::uint32_t kinds, const char* sentence, ...) {
    std::array<ErrorArg, Error::kMaxArgs> values{};
    std::va_list args;
    va_start(args, sentence);
    const std::uint8_t count = take_arguments(values, kinds, args);
    va_end(args);
    return render_sentence(out, sentence, std::span(values).first(count)).size();
}

#ifdef TALPA_COMPACT_ERRORS

/// What an Error leaves aside.
struct ErrorRecord {
    std::uint16_t serial = 0;
    std::uint8_t arg_count = 0;
    const char* sentence = nullptr;
    std::array<ErrorArg, Error::kMaxArgs> args{};

    static ErrorRecord& next(Error& error) {
        static constinit std::uint16_t last = 0;
        if (++last == 0) ++last;
        error.serial_ = last;
        ErrorRecord& record = of(error);
        record.serial = last;
        return record;
    }
    static ErrorRecord& of(const Error& error) {
        static constinit std::array<ErrorRecord, Error::kKept> kept{};
        return kept[error.serial_ % kept.size()];
    }
    static bool has(const Error& error) { return error.serial_ != 0 && of(error).serial == error.serial_; }
};

std::unexpected<Error> detail::make_failure(std::uint32_t code_and_kinds, const char* sentence, ...) {
    Error error;
    error.code = static_cast<ErrorCode>(code_and_kinds & 0xFF);
    ErrorRecord& record = ErrorRecord::next(error);
    record.sentence = sentence;
    std::va_list args;
    va_start(args, sentence);
    record.arg_count = take_arguments(record.args, code_and_kinds >> 8, args);
    va_end(args);
    return std::unexpected<Error>(error);
}

namespace {

const char* packed_name(ErrorCode code) {
    switch (code) {
#define X(name, number, text) \
    case ErrorCode::name:     \
        return TALPA_SENTENCE(#name);
        TALPA_ERROR_CODES(X)
#undef X
    }
    return "";
}

}  // namespace

std::string_view Error::render(std::span<char> out) const {
    if (!ErrorRecord::has(*this)) return render_sentence(out, packed_name(code), {});
    const ErrorRecord& record = ErrorRecord::of(*this);
    return render_sentence(out, record.sentence, std::span(record.args).first(record.arg_count));
}

#else

std::unexpected<Error> detail::make_failure(std::uint32_t code_and_kinds, const char* sentence, ...) {
    Error error;
    error.code = static_cast<ErrorCode>(code_and_kinds & 0xFF);
    error.sentence = sentence;
    std::va_list args;
    va_start(args, sentence);
    error.arg_count = take_arguments(error.args, code_and_kinds >> 8, args);
    va_end(args);
    return std::unexpected<Error>(error);
}

std::string_view Error::render(std::span<char> out) const {
    return render_sentence(out, sentence, std::span(args).first(arg_count));
}

#endif

}  // namespace talpa
