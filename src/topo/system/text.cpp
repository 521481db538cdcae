#include "topo/system/text.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

namespace talpa::topo {
namespace {

bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
}

}  // namespace

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

}  // namespace talpa::topo
