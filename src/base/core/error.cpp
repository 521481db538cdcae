#include "base/core/error.h"

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
    void put_number(std::uint64_t value, unsigned base) {
        char digits[20];
        std::size_t n = 0;
        do {
            digits[n++] = "0123456789abcdef"[value % base];
            value /= base;
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
