// Small text helpers of topo: lines and words, words for a shell, truth of a variable, Go durations (topo spec,
// sections 2.2, 2.5).
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/host/environment.h"
#include "base/host/printable.h"

namespace talpa::topo {

using host::columns;
using host::environment;
using host::is_utf8;
using host::LineEnds;

/// Foreign text as it may be shown: no x-topo text, target answer or image name can drive the terminal. Lines stay;
/// host::printable with LineEnds::Replace, which that argument finds, makes one line of them.
[[nodiscard]] inline std::string printable(std::string_view text) {
    return host::printable(text, LineEnds::Keep);
}

[[nodiscard]] std::string_view trimmed(std::string_view text);
/// What a program said, trimmed and on one line, as it may be shown.
[[nodiscard]] inline std::string one_line(std::string_view text) {
    return host::printable(trimmed(text), LineEnds::Replace);
}
[[nodiscard]] std::string lower(std::string_view text);
[[nodiscard]] std::vector<std::string> split(std::string_view text, std::string_view separator);
/// Lines without their ends ("\n" or "\r\n"); a last empty one is left out.
[[nodiscard]] std::vector<std::string> lines_of(std::string_view text);
[[nodiscard]] std::string joined(const std::vector<std::string>& parts, std::string_view between);

/// One word for a POSIX shell: as it is when it holds nothing special, else in single quotes.
[[nodiscard]] std::string shell_quoted(std::string_view word);
[[nodiscard]] std::string shell_quoted(const std::vector<std::string>& words);
/// Splits as a shell would (quotes, backslash), without expanding anything; nothing when a quote stays open.
[[nodiscard]] std::optional<std::vector<std::string>> shell_words(std::string_view text);

/// "1 true yes on y enabled", any case (section 2.5).
[[nodiscard]] bool truthy(std::string_view text);

/// Go syntax: "5s", "1m30s", "250ms", "0"; nothing for all else (a bare number too).
[[nodiscard]] std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);

/// "1.5 MB" in steps of 1000.
[[nodiscard]] std::string human_bytes(std::uint64_t bytes);

}  // namespace talpa::topo
