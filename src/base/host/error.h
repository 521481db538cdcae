// The host's error: the code of base/core with a text of its own, what was being done, and what to do next.
#pragma once

#include <fmt/format.h>

#include <expected>
#include <string>
#include <utility>

#include "base/core/error.h"

namespace talpa::host {

struct Error {
    ErrorCode code = ErrorCode::Internal;
    std::string message;  ///< what is wrong
    std::string context;  ///< what was being done, outermost first: "reading model.pte: method 'forward'"
    std::string hint;     ///< what to do next; may hold a command to paste

    Error() = default;
    Error(ErrorCode c, std::string m, std::string h = {}) : code(c), message(std::move(m)), hint(std::move(h)) {}
    /// From a freestanding error; its text is made now, so the bytes it points into may go.
    Error(const talpa::Error& e);  // NOLINT(google-explicit-constructor): TRY in host code relies on it

    /// Puts `what` in front of the context.
    [[nodiscard]] Error with_context(std::string what) &&;
    [[nodiscard]] Error with_hint(std::string text) &&;

    /// "context: message (InvalidProgram)\n  hint", as a program prints it after "NAME: ".
    [[nodiscard]] std::string describe() const;
};

template <typename T>
using Result = std::expected<T, Error>;

/// `return host::failure(ErrorCode::NotFound, "no method '{}'", name);`
template <typename... Args>
[[nodiscard]] std::unexpected<Error> failure(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
    return std::unexpected<Error>(Error(code, fmt::format(format, std::forward<Args>(args)...)));
}

/// Adds context to a failed result, whichever of the two error types it carries: `with_context(load(x), "loading x")`.
template <typename T, typename E>
[[nodiscard]] Result<T> with_context(std::expected<T, E> result, std::string what) {
    if (result) {
        if constexpr (std::is_void_v<T>)
            return {};
        else
            return std::move(*result);
    }
    return std::unexpected<Error>(Error(std::move(result.error())).with_context(std::move(what)));
}

}  // namespace talpa::host
