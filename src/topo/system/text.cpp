#include "topo/system/text.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

namespace talpa::topo {
namespace {

bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
}

// Length of the UTF-8 sequence at `i`, 0 if it is broken; `code` is its code point.
std::size_t utf8_length(std::string_view s, std::size_t i, std::uint32_t& code) {
    const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(s[k]); };
    const unsigned char first = byte(i);
    std::size_t n = 0;
    if (first < 0x80) {
        code = first;
        return 1;
    }
    if (first >= 0xC2 && first < 0xE0) {
        n = 2;
        code = first & 0x1FU;
    } else if (first >= 0xE0 && first < 0xF0) {
        n = 3;
        code = first & 0x0FU;
    } else if (first >= 0xF0 && first < 0xF5) {
        n = 4;
        code = first & 0x07U;
    }
    if (n == 0 || i + n > s.size()) return 0;
    for (std::size_t k = 1; k < n; ++k) {
        if ((byte(i + k) & 0xC0U) != 0x80) return 0;
        code = (code << 6) | (byte(i + k) & 0x3FU);
    }
    const bool overlong = (n == 3 && code < 0x800) || (n == 4 && code < 0x10000);
    const bool surrogate = code >= 0xD800 && code < 0xE000;
    return overlong || surrogate || code > 0x10FFFF ? 0 : n;
}

// Marks that turn the direction of a line or hide text in it.
bool is_trick(std::uint32_t code) {
    return (code >= 0x80 && code < 0xA0) || (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069) ||
           code == 0x200E || code == 0x200F || code == 0x2028 || code == 0x2029;
}

}  // namespace

std::string printable(std::string_view text, LineEnds line_ends) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size();) {
        if (line_ends == LineEnds::Replace && (text[i] == '\n' || text.substr(i, 2) == "\r\n")) {
            while (i < text.size() && (text[i] == '\n' || text[i] == '\r')) ++i;
            if (i < text.size() && !out.empty()) out += "; ";
            continue;
        }
        std::uint32_t code = 0;
        const std::size_t n = utf8_length(text, i, code);
        if (n == 0) {
            out += '?';
            ++i;
            continue;
        }
        const bool control = code < 0x20 || code == 0x7F;
        const bool kept = code == '\t' || (code == '\n' && line_ends == LineEnds::Keep);
        if ((control && !kept) || is_trick(code))
            out += '?';
        else
            out += text.substr(i, n);
        i += n;
    }
    return out;
}

bool is_utf8(std::string_view text) {
    std::uint32_t code = 0;
    for (std::size_t i = 0, n = 0; i < text.size(); i += n)
        if ((n = utf8_length(text, i, code)) == 0) return false;
    return true;
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
    while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
    return text;
}

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return out;
}

std::vector<std::string> split(std::string_view text, std::string_view separator) {
    std::vector<std::string> parts;
    for (;;) {
        const std::size_t at = text.find(separator);
        parts.emplace_back(text.substr(0, at));
        if (at == std::string_view::npos) return parts;
        text.remove_prefix(at + separator.size());
    }
}

std::vector<std::string> lines_of(std::string_view text) {
    std::vector<std::string> lines = split(text, "\n");
    for (std::string& line : lines)
        if (line.ends_with('\r')) line.pop_back();
    if (lines.back().empty()) lines.pop_back();
    return lines;
}

std::string joined(const std::vector<std::string>& parts, std::string_view between) {
    return fmt::format("{}", fmt::join(parts, between));
}

std::string shell_quoted(std::string_view word) {
    constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./-_#";
    if (!word.empty() && word.front() != '#' && word.find_first_not_of(kPlain) == std::string_view::npos)
        return std::string(word);
    std::string out = "'";
    for (const char c : word) {
        if (c == '\'')
            out += "'\\''";
        else
            out += c;
    }
    return out + "'";
}

std::string shell_quoted(const std::vector<std::string>& words) {
    std::vector<std::string> quoted;
    for (const std::string& word : words) quoted.push_back(shell_quoted(word));
    return joined(quoted, " ");
}

std::optional<std::vector<std::string>> shell_words(std::string_view text) {
    std::vector<std::string> words;
    std::string word;
    bool in_word = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (is_space(c)) {
            if (in_word) words.push_back(std::move(word));
            word.clear();
            in_word = false;
            continue;
        }
        in_word = true;
        if (c == '\'') {
            const std::size_t end = text.find('\'', i + 1);
            if (end == std::string_view::npos) return std::nullopt;
            word += text.substr(i + 1, end - i - 1);
            i = end;
        } else if (c == '"') {
            for (++i; i < text.size() && text[i] != '"'; ++i) {
                if (text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == '"' || text[i + 1] == '\\')) ++i;
                word += text[i];
            }
            if (i == text.size()) return std::nullopt;
        } else if (c == '\\') {
            if (++i == text.size()) return std::nullopt;
            word += text[i];
        } else {
            word += c;
        }
    }
    if (in_word) words.push_back(std::move(word));
    return words;
}

bool truthy(std::string_view text) {
    const std::string t = lower(trimmed(text));
    return t == "1" || t == "true" || t == "yes" || t == "on" || t == "y" || t == "enabled";
}

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) {
    if (text == "0") return std::chrono::milliseconds(0);
    struct Unit {
        std::string_view name;
        double ms;
    };
    // The longer names first, so that "ms" is no "m".
    constexpr Unit kUnits[] = {{"ns", 1e-6}, {"us", 1e-3}, {"µs", 1e-3}, {"ms", 1},
                               {"s", 1e3},   {"m", 6e4},   {"h", 3.6e6}};
    if (text.empty()) return std::nullopt;
    double total_ms = 0;
    while (!text.empty()) {
        std::size_t digits = 0, points = 0;
        while (digits < text.size() && ((text[digits] >= '0' && text[digits] <= '9') || text[digits] == '.')) {
            points += text[digits] == '.';
            ++digits;
        }
        if (digits == points || points > 1 || digits > 15) return std::nullopt;
        const double number = std::strtod(std::string(text.substr(0, digits)).c_str(), nullptr);
        text.remove_prefix(digits);
        const Unit* found = nullptr;
        for (const Unit& unit : kUnits)
            if (found == nullptr && text.starts_with(unit.name)) found = &unit;
        if (found == nullptr) return std::nullopt;
        total_ms += number * found->ms;
        text.remove_prefix(found->name.size());
    }
    if (total_ms > 3.6e9) return std::nullopt;  // 1000 hours
    return std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(total_ms)));
}

std::string human_bytes(std::uint64_t bytes) {
    constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB"};
    double value = static_cast<double>(bytes);
    std::size_t unit = 0;
    while (value >= 999.95 && unit < 4) {
        value /= 1000;
        ++unit;
    }
    return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::string() : std::string(value);
}

}  // namespace talpa::topo
