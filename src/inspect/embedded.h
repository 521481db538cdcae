// Files of this folder that the build puts into the program (cmake/TalpaEmbed.cmake).
#pragma once

#include <cstddef>
#include <string_view>

namespace talpa::inspect {

/// The bytes of "html/report.css" …; empty if no such file was embedded.
[[nodiscard]] std::string_view embedded(std::string_view name);

}  // namespace talpa::inspect
