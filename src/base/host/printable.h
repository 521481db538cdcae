// A stranger's text made harmless for a terminal: names in files, answers of targets, labels, messages that quote them.
// Nothing that gets through moves a cursor, changes colours, or hides and reorders what is read: no control characters
// (C0, DEL, C1), no marks of direction, no line separators, no bytes that are not UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace talpa::host {

/// One line in which nothing is lost: what is not harmless, or not seen, becomes \xNN or \u{N}. For names, which must
/// look distinct.
[[nodiscard]] std::string printable(std::string_view text);

/// What becomes of "\n" and "\r\n": it stays, or the lines are joined by "; " (and those at the end go).
enum class LineEnds : std::uint8_t { Keep, Replace };

/// For prose: what is not harmless becomes '?'; tabs stay.
[[nodiscard]] std::string printable(std::string_view text, LineEnds line_ends);

/// Columns that a printable text takes, counting every code point as one.
[[nodiscard]] std::size_t columns(std::string_view utf8);

/// The bytes of the UTF-8 sequence that `text` begins with: shortest forms only, no surrogates, at most U+10FFFF.
/// 0 if there is none.
[[nodiscard]] std::size_t utf8_length(std::string_view text);
[[nodiscard]] bool is_utf8(std::string_view text);

}  // namespace talpa::host
