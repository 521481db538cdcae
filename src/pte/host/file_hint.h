// What a file is that was given for a program but is none, and what its user may do about it.
#pragma once

#include <string>
#include <string_view>

#include "base/core/byte_reader.h"

namespace talpa::pte::host {

/// For a file that `Program::open` refused with `message`: other formats by their first bytes, files cut short. Empty
/// where nothing is known.
[[nodiscard]] std::string file_hint(Bytes file, std::string_view message);

}  // namespace talpa::pte::host
