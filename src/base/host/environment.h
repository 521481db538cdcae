// Variables of the environment.
#pragma once

#include <cstdlib>
#include <string>

namespace talpa::host {

/// The value of a variable, empty if it is unset.
[[nodiscard]] inline std::string environment(const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? std::string() : std::string(value);
}

}  // namespace talpa::host
