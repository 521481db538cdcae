#include "topo/target/device_tree_text.h"

#include <algorithm>
#include <charconv>

#include "topo/system/process.h"
#include "topo/system/text.h"

namespace talpa::topo {

host::Result<TreeText> TreeText::read(const std::filesystem::path& dtb) {
    if (!find_program("dtc"))
        return std::unexpected(
            host::Error(ErrorCode::NotFound, "\"dtc\" not found in $PATH", "apt-get install device-tree-compiler"));
    TRY_ASSIGN(const Outcome outcome, capture({.argv = {"dtc", "-q", "-I", "dtb", "-O", "dts", dtb.string()},
                                               .timeout = Milliseconds(10'000)}));
    TreeText tree = parse(outcome.out);
    if (!outcome.ok() || tree.empty())
        return host::failure(ErrorCode::InvalidExternalData, "{} is no device tree{}", dtb.string(),
                             outcome.err.empty() ? "" : ": " + one_line(outcome.err));
    return tree;
}

TreeText TreeText::parse(const std::string& source) {
    TreeText tree;
    std::vector<std::string> path;
    const auto here = [&] {
        std::string text;
        for (std::size_t i = 1; i < path.size(); ++i) text += "/" + path[i];
        return text.empty() ? std::string("/") : text;
    };
    for (const std::string& raw : lines_of(source)) {
        std::string_view line = trimmed(raw);
        if (line.ends_with(" {")) {
            line.remove_suffix(2);
            const std::size_t label = line.rfind(": ");
            path.emplace_back(label == std::string_view::npos ? line : line.substr(label + 2));
            if (tree.nodes_.emplace(here(), Properties{}).second) tree.order_.push_back(here());
        } else if (line == "};") {
            if (!path.empty()) path.pop_back();
        } else if (!path.empty() && line.ends_with(';')) {
            line.remove_suffix(1);
            const std::size_t equals = line.find(" = ");
            tree.nodes_[here()][std::string(line.substr(0, equals))] =
                equals == std::string_view::npos ? "" : std::string(line.substr(equals + 3));
        }
    }
    return tree;
}

const TreeText::Properties* TreeText::node(const std::string& path) const {
    const auto it = nodes_.find(path);
    return it == nodes_.end() ? nullptr : &it->second;
}

std::string TreeText::find_named(const std::string& name) const {
    for (const std::string& path : order_)
        if (path.ends_with("/" + name)) return path;
    return {};
}

std::string TreeText::find_compatible(const std::string& compatible) const {
    for (const std::string& path : order_) {
        const Properties& properties = nodes_.at(path);
        const auto it = properties.find("compatible");
        // "\"a\\0b\"" (dtc since 1.6) or "\"a\", \"b\"".
        if (it == properties.end()) continue;
        std::string text = it->second;
        for (const char* between : {"\\0", "\", \""})
            for (std::size_t at; (at = text.find(between)) != std::string::npos;)
                text.replace(at, std::string_view(between).size(), "\n");
        if (text.size() < 2) continue;
        const std::vector<std::string> all = lines_of(text.substr(1, text.size() - 2));
        if (std::find(all.begin(), all.end(), compatible) != all.end()) return path;
    }
    return {};
}

std::vector<std::string> TreeText::children(const std::string& path) const {
    std::vector<std::string> found;
    const std::string start = path == "/" ? path : path + "/";
    for (const std::string& one : order_)
        if (one.starts_with(start) && one.size() > start.size() && one.find('/', start.size()) == std::string::npos)
            found.push_back(one);
    return found;
}

std::vector<std::uint32_t> TreeText::cells(const std::string& value) {
    std::vector<std::uint32_t> found;
    if (!value.starts_with('<') || !value.ends_with('>')) return found;
    for (const std::string& word : split(std::string_view(value).substr(1, value.size() - 2), " ")) {
        std::uint32_t cell = 0;
        const bool hex = word.starts_with("0x");
        const char* from = word.data() + (hex ? 2 : 0);
        const auto [end, error] = std::from_chars(from, word.data() + word.size(), cell, hex ? 16 : 10);
        if (word.empty() || error != std::errc() || end != word.data() + word.size()) return {};
        found.push_back(cell);
    }
    return found;
}

std::optional<std::uint32_t> TreeText::phandle(const std::string& path) const {
    const Properties* properties = node(path);
    if (properties == nullptr) return std::nullopt;
    for (const char* name : {"phandle", "linux,phandle"}) {
        const auto it = properties->find(name);
        if (it == properties->end()) continue;
        const std::vector<std::uint32_t> value = cells(it->second);
        if (value.size() == 1) return value[0];
    }
    return std::nullopt;
}

std::uint32_t TreeText::highest_phandle() const {
    std::uint32_t highest = 0;
    for (const std::string& path : order_)
        // 0 and 0xffffffff mean none.
        if (const auto value = phandle(path); value && *value != 0xFFFFFFFFU) highest = std::max(highest, *value);
    return highest;
}

}  // namespace talpa::topo
