#include "inspect/printable.h"

#include <fmt/format.h>

namespace talpa::inspect {
namespace {

struct CodePoint {
    char32_t value = 0;
    std::size_t bytes = 0;  ///< 0: not UTF-8
};

// Shortest forms only, no surrogates, at most U+10FFFF.
CodePoint decode(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char lead = byte(0);
    if (lead < 0x80) return {lead, 1};
    const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC2 ? 2 : 0;
    if (length == 0 || lead > 0xF4 || text.size() < length) return {};
    char32_t value = lead & (0x7F >> length);
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xC0) != 0x80) return {};
        value = value << 6 | (byte(i) & 0x3Fu);
    }
    constexpr char32_t kShortest[] = {0, 0, 0x80, 0x800, 0x10000};
    if (value < kShortest[length] || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) return {};
    return {value, length};
}

bool harmless(char32_t c) {
    if (c < 0x20 || (c >= 0x7F && c < 0xA0)) return false;        // C0, DEL, C1
    if (c == 0x061C || c == 0x200E || c == 0x200F) return false;  // direction marks
    if (c >= 0x2028 && c <= 0x202E) return false;                 // line separators, embeddings
    if (c >= 0x2060 && c <= 0x206F) return false;                 // invisible, isolates
    return c != 0xFEFF && !(c >= 0xFFF9 && c <= 0xFFFB) && !(c >= 0xE0000 && c <= 0xE007F);
}

}  // namespace

std::string printable(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        const CodePoint c = decode(text);
        const std::size_t bytes = c.bytes == 0 ? 1 : c.bytes;
        if (c.bytes != 0 && harmless(c.value))
            out += text.substr(0, bytes);
        else if (bytes == 1)
            out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
        else
            out += fmt::format("\\u{{{:x}}}", static_cast<std::uint32_t>(c.value));
        text.remove_prefix(bytes);
    }
    return out;
}

std::string size_text(std::uint64_t bytes) {
    static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    auto value = static_cast<double>(bytes);
    std::size_t unit = 0;
    while (value >= 1024 && unit + 1 < std::size(kUnits)) value /= 1024, ++unit;
    return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::size_t columns(std::string_view utf8) {
    std::size_t n = 0;
    for (const char c : utf8) n += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    return n;
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
