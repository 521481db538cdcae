#include "compiler/vela/ini.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "base/host/printable.h"

namespace talpa::compiler::vela {
namespace {

using host::failure;
using host::Result;

constexpr std::size_t kLongestFile = 1 << 20, kMostSettings = 20'000;

std::string_view trimmed(std::string_view s) {
    const auto space = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v'; };
    while (!s.empty() && space(s.front())) s.remove_prefix(1);
    while (!s.empty() && space(s.back())) s.remove_suffix(1);
    return s;
}

/// Of strangers' text in messages: at most a line's worth.
std::string shown(std::string_view s) {
    return host::printable(s.substr(0, 80));
}

}  // namespace

std::string lower(std::string_view s) {
    std::string out(s);
    std::ranges::transform(out, out.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return out;
}

std::string Setting::where() const {
    return fmt::format("{}:{}: [{}] {}", file, line, section, key);
}

Result<void> Ini::add(std::string_view text, const std::string& file) {
    if (text.size() > kLongestFile)
        return failure(ErrorCode::InvalidExternalData, "{} has {} bytes: no configuration is that long", file,
                       text.size());
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    std::set<std::string> seen_sections;
    std::set<std::pair<std::string, std::string>> seen_keys;
    std::string section;
    Setting* last = nullptr;  // that an indented line continues
    bool any_section = false;
    for (std::size_t number = 1; !text.empty(); ++number) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        const std::string_view content = trimmed(line);
        if (content.empty() || content[0] == '#' || content[0] == ';') continue;
        if (content.find('\0') != std::string_view::npos)
            return failure(ErrorCode::InvalidExternalData, "{}:{}: not a text", file, number);
        if ((line[0] == ' ' || line[0] == '\t') && last != nullptr) {
            last->value += fmt::format("\n{}", content);
            continue;
        }
        last = nullptr;
        if (content[0] == '[') {
            const auto close = content.find(']');
            if (close == std::string_view::npos || close == 1)
                return failure(ErrorCode::InvalidExternalData, "{}:{}: '{}' is no section", file, number,
                               shown(content));
            section = std::string(content.substr(1, close - 1));
            any_section = true;
            if (section != "DEFAULT" && !seen_sections.insert(section).second)
                return failure(ErrorCode::InvalidExternalData, "{}:{}: the section [{}] stands twice", file, number,
                               shown(section));
            if (section != "DEFAULT") sections_.try_emplace(section);
            continue;
        }
        if (!any_section)
            return failure(ErrorCode::InvalidExternalData, "{}:{}: '{}' stands in no section", file, number,
                           shown(content));
        const auto at = content.find_first_of("=:");
        if (at == std::string_view::npos || at == 0)
            return failure(ErrorCode::InvalidExternalData, "{}:{}: '{}' in [{}] is no 'key = value'", file, number,
                           shown(content), shown(section));
        const std::string_view key = trimmed(content.substr(0, at)), value = trimmed(content.substr(at + 1));
        if (!seen_keys.emplace(section, lower(key)).second)
            return failure(ErrorCode::InvalidExternalData, "{}:{}: the key '{}' stands twice in [{}]", file, number,
                           shown(key), shown(section));
        if (value.find("%(") != std::string_view::npos)
            return failure(ErrorCode::NotSupported,
                           "{}:{}: [{}] {}: values that name others ('%(…)s') are not supported", file, number,
                           shown(section), shown(key));
        if (seen_keys.size() > kMostSettings)
            return failure(ErrorCode::InvalidExternalData, "{}:{}: more than {} keys", file, number, kMostSettings);
        auto& into = section == "DEFAULT" ? defaults_ : sections_[section];
        Setting& setting = into[lower(key)];
        setting = {std::string(value), file, shown(section), shown(key), number};
        last = &setting;
    }
    return {};
}

std::vector<std::string> Ini::names(std::string_view prefix) const {
    std::vector<std::string> found;
    for (const auto& [name, settings] : sections_)
        if (name.starts_with(prefix) && name.size() > prefix.size()) found.push_back(name.substr(prefix.size()));
    return found;
}

Result<std::map<std::string, Setting>> Ini::settings(const std::string& name) const {
    std::map<std::string, Setting> all;
    std::set<std::string> passed;
    std::string section = name;
    const Setting* from = nullptr;
    for (;;) {
        const auto found = sections_.find(section);
        if (found == sections_.end()) {
            if (from != nullptr)
                return failure(ErrorCode::NotFound, "{}: there is no section [{}] to inherit from", from->where(),
                               shown(section));
            return failure(ErrorCode::NotFound, "there is no section [{}]", shown(section));
        }
        if (!passed.insert(section).second)
            return failure(ErrorCode::InvalidExternalData, "{}: [{}] inherits from itself, by way of [{}]",
                           from->where(), shown(section), from->section);
        // A child's word counts more than its parent's.
        for (const auto& [key, setting] : found->second) all.emplace(key, setting);
        const auto inherit = found->second.find("inherit");
        if (inherit == found->second.end()) break;
        from = &inherit->second;
        section = from->value;
    }
    for (const auto& [key, setting] : defaults_) all.emplace(key, setting);
    all.erase("inherit");
    return all;
}

}  // namespace talpa::compiler::vela
