// Errors as values, for code that runs on a Cortex-M33 as well as on a host: no heap, no exceptions, no formatting
// until somebody wants to read it. An Error is a code from one table, a constant sentence with {} placeholders, and
// what fills them. Host code turns it into talpa::host::Error (base/host/error.h), which owns its text and carries
// context and a hint.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#ifdef TALPA_COMPACT_ERRORS
#include "base/core/packed_sentence.h"
#endif

namespace talpa {

/// Error codes. Numbers below 0x40 are those of the ExecuTorch runtime (pte-format, section 10), so that logs compare;
/// the names appear in messages. X(name, number, what a user may read it as)
#define TALPA_ERROR_CODES(X)                                                       \
    X(Internal, 0x01, "a fault in talpa itself")                                   \
    X(InvalidState, 0x02, "the operation is not possible in this state")           \
    X(NotSupported, 0x10, "understood, but not supported")                         \
    X(InvalidArgument, 0x12, "an argument is out of range or of the wrong shape")  \
    X(InvalidType, 0x13, "a value or tensor is of the wrong type")                 \
    X(OperatorMissing, 0x14, "the program needs operators that are not built in")  \
    X(NotFound, 0x20, "no such file, method, key or device")                       \
    X(MemoryAllocation, 0x21, "a memory pool is too small")                        \
    X(AccessFailed, 0x22, "reading or writing failed")                             \
    X(InvalidProgram, 0x23, "the program is malformed")                            \
    X(InvalidExternalData, 0x24, "an external data file does not fit the program") \
    X(OutOfResources, 0x25, "a limit was reached")                                 \
    X(DelegateIncompatible, 0x30, "the delegate was compiled for another device")  \
    X(DelegateAllocation, 0x31, "the delegate's memory is too small")              \
    X(CommandStream, 0x40, "the NPU command stream is malformed")                  \
    X(WeightStream, 0x41, "the NPU weight stream is malformed")                    \
    X(OutOfBounds, 0x42, "an access outside the memory it may touch")              \
    X(Hazard, 0x43, "operations of the command stream overlap unsafely")           \
    X(NpuFault, 0x44, "the NPU stopped with an error")                             \
    X(Timeout, 0x45, "no answer in time")                                          \
    X(InvalidPicture, 0x46, "the picture cannot be decoded")

enum class ErrorCode : std::uint16_t {
#define X(name, number, text) name = number,
    TALPA_ERROR_CODES(X)
#undef X
};

/// The code's name as in the table ("InvalidProgram"), or "Unknown".
[[nodiscard]] constexpr std::string_view error_name(ErrorCode code) {
    switch (code) {
#define X(name, number, text) \
    case ErrorCode::name:     \
        return #name;
        TALPA_ERROR_CODES(X)
#undef X
    }
    return "Unknown";
}

/// What fills one {} of an error's sentence. Text must outlive the error: literals, or bytes of the program being read.
struct ErrorArg {
    enum class Kind : std::uint8_t { Signed, Unsigned, Hex, Text } kind = Kind::Signed;
    std::uint64_t number = 0;
    std::string_view text;

    constexpr ErrorArg() = default;
    constexpr ErrorArg(int v) : number(static_cast<std::uint64_t>(static_cast<std::int64_t>(v))) {}
    constexpr ErrorArg(long v) : number(static_cast<std::uint64_t>(v)) {}
    constexpr ErrorArg(long long v) : number(static_cast<std::uint64_t>(v)) {}
    constexpr ErrorArg(unsigned v) : kind(Kind::Unsigned), number(v) {}
    constexpr ErrorArg(unsigned long v) : kind(Kind::Unsigned), number(v) {}
    constexpr ErrorArg(unsigned long long v) : kind(Kind::Unsigned), number(v) {}
    constexpr ErrorArg(std::string_view v) : kind(Kind::Text), text(v) {}
    constexpr ErrorArg(const char* v) : kind(Kind::Text), text(v) {}
};

/// Shows an argument as 0x….
[[nodiscard]] constexpr ErrorArg hex(std::uint64_t v) {
    ErrorArg arg(static_cast<unsigned long long>(v));
    arg.kind = ErrorArg::Kind::Hex;
    return arg;
}

#ifdef TALPA_COMPACT_ERRORS

/// As on the host, in one word: hundreds of functions return one of these by way of Result, and 150 bytes each time are
/// too much code and too much stack for the M33. What fills the sentence is kept aside, for the last kKept errors; an
/// older one renders as the name of its code. One thread only, no use in interrupt handlers.
class Error {
  public:
    static constexpr std::size_t kMaxArgs = 6;
    static constexpr unsigned kKept = 4;

    ErrorCode code = ErrorCode::Internal;

    constexpr Error() = default;
    template <typename... Args>
    Error(ErrorCode c, const char* sentence, const Args&... args);

    [[nodiscard]] std::string_view render(std::span<char> out) const;

  private:
    friend struct ErrorRecord;
    std::uint16_t serial_ = 0;  ///< of its record; 0: none
};
static_assert(sizeof(Error) == 4);

#else

struct Error {
    static constexpr std::size_t kMaxArgs = 6;

    ErrorCode code = ErrorCode::Internal;
    std::uint8_t arg_count = 0;
    const char* sentence = "";  ///< static; one {} per argument
    std::array<ErrorArg, kMaxArgs> args{};

    constexpr Error() = default;
    template <typename... Args>
        requires(sizeof...(Args) <= kMaxArgs)
    constexpr Error(ErrorCode c, const char* s, Args... a)
        : code(c), arg_count(sizeof...(Args)), sentence(s), args{ErrorArg(a)...} {}

    /// Writes the sentence with its arguments into `out` (cut at its end, never NUL-terminated); returns the part
    /// written.
    [[nodiscard]] std::string_view render(std::span<char> out) const;
};

#endif

template <typename T>
using Result = std::expected<T, Error>;

namespace detail {

// There are hundreds of failures in the code, and the M33 has 128 KiB. So each is one call with the arguments as they
// are: their kinds, three bits an argument, are a constant beside the code.
enum class Passed : std::uint32_t { None, Signed32, Unsigned32, Signed64, Unsigned64, Text, Literal, Whole };

template <typename T>
[[nodiscard]] consteval Passed passed_as() {
    if constexpr (std::is_same_v<T, std::string_view>)
        return Passed::Text;
    else if constexpr (std::is_same_v<T, ErrorArg>)
        return Passed::Whole;
    else if constexpr (std::is_convertible_v<T, const char*>)
        return Passed::Literal;
    else if constexpr (std::is_integral_v<T> && (sizeof(T) < 4 || std::is_signed_v<T>))
        return sizeof(T) > 4 ? Passed::Signed64 : Passed::Signed32;
    else
        return sizeof(T) > 4 ? Passed::Unsigned64 : Passed::Unsigned32;
}

template <typename T>
[[nodiscard]] inline auto pass(const T& v) {
    if constexpr (std::is_same_v<T, ErrorArg> || std::is_same_v<T, std::string_view>)
        return &v;
    else
        return v;  // narrow integers are promoted by the call
}

[[nodiscard, gnu::noinline, gnu::cold]] std::unexpected<Error> make_failure(std::uint32_t code_and_kinds,
                                                                            const char* sentence, ...);

[[nodiscard, gnu::noinline]] std::size_t format_passed(std::span<char> out, std::uint32_t kinds, const char* sentence,
                                                       ...);

/// Code and kinds of the arguments in one word, as make_failure takes them.
template <typename... Args>
[[nodiscard]] consteval std::uint32_t kinds_of() {
    std::uint32_t kinds = 0, shift = 8;
    ((kinds |= static_cast<std::uint32_t>(passed_as<std::decay_t<const Args>>()) << shift, shift += 3), ...);
    return kinds;
}

}  // namespace detail

/// `return fail(ErrorCode::InvalidProgram, "tensor {} has rank {}, at most {} is supported", i, rank, kMaxRank);`
template <typename... Args>
    requires(sizeof...(Args) <= Error::kMaxArgs && (std::is_constructible_v<ErrorArg, Args> && ...))
[[nodiscard]] std::unexpected<Error> fail(ErrorCode code, const char* sentence, const Args&... args) {
    return detail::make_failure(static_cast<std::uint32_t>(code) | detail::kinds_of<Args...>(), sentence,
                                detail::pass(args)...);
}

/// How a function that takes a sentence as a parameter passes it on: a literal may be given as TALPA_SENTENCE("…"),
/// which the firmware packs; calls of `fail` itself are packed without it. `(fail)(…)` takes what is no literal.
#ifdef TALPA_COMPACT_ERRORS
#define TALPA_SENTENCE(literal) (::talpa::detail::PackedSentence<literal>::kText.data())
#define fail(code, sentence, ...) (fail)(code, TALPA_SENTENCE(sentence) __VA_OPT__(, ) __VA_ARGS__)
#else
#define TALPA_SENTENCE(literal) literal
#endif

/// Writes a sentence with its arguments into `out`, as Error::render does; how many characters. One call a line is
/// less code than a chain of appends.
template <typename... Args>
    requires(sizeof...(Args) <= Error::kMaxArgs && (std::is_constructible_v<ErrorArg, Args> && ...))
std::size_t format_text(std::span<char> out, const char* sentence, const Args&... args) {
    return detail::format_passed(out, detail::kinds_of<Args...>() >> 8, sentence, detail::pass(args)...);
}

#ifdef TALPA_COMPACT_ERRORS
template <typename... Args>
Error::Error(ErrorCode c, const char* sentence, const Args&... args) : Error((fail)(c, sentence, args...).error()) {}
#endif

#ifdef TALPA_COMPACT_ERRORS
#define TALPA_ERROR_PASSING [[gnu::always_inline]] inline  // two stores
#else
#define TALPA_ERROR_PASSING [[gnu::noinline, gnu::cold]]  // a copy of 150 bytes
#endif

/// What TRY returns: turns into any Result whose error can be made of this one.
template <typename E>
class PassedError {
  public:
    explicit PassedError(E& error) : error_(error) {}
    template <typename T, typename F>
        requires std::is_constructible_v<F, E&&>
    TALPA_ERROR_PASSING operator std::expected<T, F>() && {  // NOLINT(google-explicit-constructor)
        return std::expected<T, F>(std::unexpect, std::move(error_));
    }

  private:
    E& error_;
};

}  // namespace talpa

// Passes an error up. TRY(expr) is a statement; TRY_ASSIGN(declaration, expr) binds the value:
//   TRY(check(x));        TRY_ASSIGN(const auto size, reader.u32(4));
// Works where the function returns Result<T> of this error type or of one that is constructible from it.
#define TALPA_CONCAT_(a, b) a##b
#define TALPA_CONCAT(a, b) TALPA_CONCAT_(a, b)
#define TRY(...)                                                                      \
    do {                                                                              \
        auto talpa_try_result = (__VA_ARGS__);                                        \
        if (!talpa_try_result) return ::talpa::PassedError(talpa_try_result.error()); \
    } while (false)
#define TRY_ASSIGN_(tmp, declaration, ...)              \
    auto tmp = (__VA_ARGS__);                           \
    if (!tmp) return ::talpa::PassedError(tmp.error()); \
    declaration = std::move(*tmp)
#define TRY_ASSIGN(declaration, ...) TRY_ASSIGN_(TALPA_CONCAT(talpa_try_, __LINE__), declaration, __VA_ARGS__)
