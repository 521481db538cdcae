#include "inspect/printable.h"

#include <fmt/format.h>

namespace talpa::inspect {

std::string size_text(std::uint64_t bytes) {
    static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    auto value = static_cast<double>(bytes);
    std::size_t unit = 0;
    while (value >= 1024 && unit + 1 < std::size(kUnits)) value /= 1024, ++unit;
    return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string fitted(std::string_view utf8, std::size_t width) {
    if (columns(utf8) <= width || width == 0) return std::string(width == 0 ? "" : utf8);
    std::size_t at = 0, n = 0;
    while (at < utf8.size()) {
        std::size_t next = at + 1;
        while (next < utf8.size() && (static_cast<unsigned char>(utf8[next]) & 0xC0) == 0x80) ++next;
        if (++n == width) break;
        at = next;
    }
    return std::string(utf8.substr(0, at)) + "…";
}

}  // namespace talpa::inspect
