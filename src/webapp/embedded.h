// The page, the samples and the API's description, as the build put them into the binary. (cmake/TalpaWebapp.cmake)
#pragma once

#include <string_view>

namespace talpa::webapp {

/// The file's bytes; empty when there is none of that name.
[[nodiscard]] std::string_view embedded(std::string_view name);

}  // namespace talpa::webapp
