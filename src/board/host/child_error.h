// An error on its way from a child process to its parent, through a pipe.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "base/host/error.h"

namespace talpa::board {

/// Never empty.
[[nodiscard]] inline std::string packed(const host::Error& error) {
    static_assert(static_cast<unsigned>(ErrorCode::InvalidPicture) < 0x80, "codes fit a character");
    return static_cast<char>(error.code) + (error.context.empty() ? "" : error.context + ": ") + error.message + "\n" +
           error.hint;
}

[[nodiscard]] inline host::Error unpacked(std::string_view text) {
    if (text.empty()) return {ErrorCode::Internal, "a process ended without saying why"};
    const auto end = std::min(text.find('\n'), text.size());
    return {static_cast<ErrorCode>(text[0]), std::string(text.substr(1, end - 1)),
            std::string(text.substr(std::min(end + 1, text.size())))};
}

}  // namespace talpa::board
