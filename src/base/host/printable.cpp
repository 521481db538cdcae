#include "base/host/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace talpa::host {
namespace {

struct CodePoint {
    char32_t value = 0;
    std::size_t bytes = 0;  ///< 0: not UTF-8
};

CodePoint decode(std::string_view text) {
    if (text.empty()) return {};
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char lead = byte(0);
    if (lead < 0x80) return {lead, 1};
    const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC2 ? 2 : 0;
    if (length == 0 || lead > 0xF4 || text.size() < length) return {};
    char32_t value = lead & (0x7Fu >> length);
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xC0u) != 0x80) return {};
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

// Others that show nothing, and make two names look alike; prose may need them (Unicode's
// Default_Ignorable_Code_Point): soft hyphen, joiners, fillers, variation selectors.
constexpr std::pair<char32_t, char32_t> kUnseen[] = {{0x00AD, 0x00AD}, {0x034F, 0x034F}, {0x115F, 0x1160},
                                                     {0x17B4, 0x17B5}, {0x180B, 0x180F}, {0x200B, 0x200D},
                                                     {0x3164, 0x3164}, {0xFFA0, 0xFFA0}};

bool is_seen(char32_t c) {
    return std::none_of(std::begin(kUnseen), std::end(kUnseen),
                        [&](const auto& range) { return c >= range.first && c <= range.second; });
}

/// How many bytes of line ends `text` begins with.
std::size_t line_ends_at(std::string_view text) {
    if (!text.starts_with('\n') && !text.starts_with("\r\n")) return 0;
    const std::size_t end = text.find_first_not_of("\r\n");
    return end == std::string_view::npos ? text.size() : end;
}

}  // namespace

std::string printable(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const CodePoint c = decode(text);
        const std::size_t bytes = c.bytes == 0 ? 1 : c.bytes;
        if (c.bytes != 0 && harmless(c.value) && is_seen(c.value))
            out += text.substr(0, bytes);
        else if (bytes == 1)
            out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
        else
            out += fmt::format("\\u{{{:x}}}", static_cast<std::uint32_t>(c.value));
        text.remove_prefix(bytes);
    }
    return out;
}

std::string printable(std::string_view text, LineEnds line_ends) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        if (const std::size_t ends = line_ends == LineEnds::Replace ? line_ends_at(text) : 0; ends > 0) {
            text.remove_prefix(ends);
            if (!text.empty() && !out.empty()) out += "; ";
            continue;
        }
        const CodePoint c = decode(text);
        const std::size_t bytes = c.bytes == 0 ? 1 : c.bytes;
        const bool kept = c.value == '\t' || (c.value == '\n' && line_ends == LineEnds::Keep);
        if (c.bytes != 0 && (kept || harmless(c.value)))
            out += text.substr(0, bytes);
        else
            out += '?';
        text.remove_prefix(bytes);
    }
    return out;
}

std::size_t columns(std::string_view utf8) {
    std::size_t n = 0;
    for (const char c : utf8) n += (static_cast<unsigned char>(c) & 0xC0u) != 0x80;
    return n;
}

std::size_t utf8_length(std::string_view text) {
    return decode(text).bytes;
}

bool is_utf8(std::string_view text) {
    while (!text.empty()) {
        const std::size_t bytes = utf8_length(text);
        if (bytes == 0) return false;
        text.remove_prefix(bytes);
    }
    return true;
}

}  // namespace talpa::host
