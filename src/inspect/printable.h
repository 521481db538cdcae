// Text for people: a stranger's names made harmless for a terminal, and numbers with separators.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/host/grouped.h"
#include "base/host/printable.h"

namespace talpa::inspect {

using host::columns;
using host::grouped;
using host::printable;

/// "3.3 MiB", "512 B"
[[nodiscard]] std::string size_text(std::uint64_t bytes);
/// At most `width` columns; what is cut is shown as "…".
[[nodiscard]] std::string fitted(std::string_view utf8, std::size_t width);

}  // namespace talpa::inspect
