// Text for people: a stranger's names made harmless for a terminal, and numbers with separators.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/host/grouped.h"

namespace talpa::inspect {

/// The text with everything that could move a cursor, change colours or reorder what is read written as \xNN or \u{N}:
/// control characters, bytes that are no UTF-8, bidirectional marks, line separators.
[[nodiscard]] std::string printable(std::string_view text);

using host::grouped;
/// "3.3 MiB", "512 B"
[[nodiscard]] std::string size_text(std::uint64_t bytes);
/// Columns that a printable text takes, counting every code point as one.
[[nodiscard]] std::size_t columns(std::string_view utf8);
/// At most `width` columns; what is cut is shown as "…".
[[nodiscard]] std::string fitted(std::string_view utf8, std::size_t width);

}  // namespace talpa::inspect
