// Large numbers as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace talpa::host {

/// "3,469,760"
[[nodiscard]] inline std::string grouped(std::uint64_t number) {
    std::string digits = std::to_string(number);
    for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
    return digits;
}

}  // namespace talpa::host
