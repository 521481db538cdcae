#include "topo/project/parameters.h"

#include <algorithm>

#include "topo/system/text.h"

namespace talpa::topo {
namespace {

// The value that one service's build.args give to `name`, if they have it.
std::optional<std::string> value_in(const yaml::Node& args, const std::string& name) {
    if (args.is_mapping()) {
        const yaml::Node* value = args.find(name);
        if (value == nullptr) return std::nullopt;
        if (!value->is_scalar() || yaml::type_of(*value) == yaml::ScalarType::Null) return "";
        return value->value;
    }
    std::optional<std::string> found;
    for (const yaml::NodePtr& item : args.items) {
        const yaml::Node& text = item->real();
        if (!text.is_scalar()) continue;
        if (text.value == name) found = "";
        if (text.value.starts_with(name + "=")) found = text.value.substr(name.size() + 1);
    }
    return found;
}

// "[\"a\",\"b\"]"
std::string json_list(const std::vector<std::string>& values) {
    std::string out = "[";
    for (const std::string& value : values) {
        if (out.size() > 1) out += ",";
        out += '"';
        for (const char c : value) {
            if (c == '"' || c == '\\') out += '\\';
            if (c == '\n')
                out += "\\n";
            else if (static_cast<unsigned char>(c) < 0x20)
                out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
            else
                out += c;
        }
        out += '"';
    }
    return out + "]";
}

bool satisfied(const Parameter& parameter, const yaml::Node& root, const Values& provided) {
    if (!parameter.required) return true;
    if (const auto given = provided.find(parameter.name); given != provided.end()) return !given->second.empty();
    const std::vector<std::string> current = current_values(root, parameter.name);
    return !current.empty() && std::none_of(current.begin(), current.end(), [](const auto& v) { return v.empty(); });
}

}  // namespace

std::vector<std::string> current_values(const yaml::Node& root, const std::string& name) {
    std::vector<std::string> values;
    const yaml::Node* services = root.find("services");
    if (services == nullptr || !services->is_mapping()) return values;
    for (const yaml::Entry& service : services->entries) {
        const yaml::Node* build = service.value->real().find("build");
        const yaml::Node* args = build == nullptr ? nullptr : build->find("args");
        if (args == nullptr) continue;
        if (auto value = value_in(*args, name)) values.push_back(std::move(*value));
    }
    return values;
}

host::Result<Values> parse_values(const std::vector<std::string>& words, const XTopo& x_topo) {
    Values values;
    for (const std::string& word : words) {
        const std::size_t equals = word.find('=');
        if (equals == std::string::npos)
            return host::failure(ErrorCode::InvalidArgument, "invalid argument format: {} (expected ARG=VALUE)", word);
        const std::string name = word.substr(0, equals);
        if (x_topo.parameters.empty()) continue;
        const bool known = std::any_of(x_topo.parameters.begin(), x_topo.parameters.end(),
                                       [&](const Parameter& p) { return p.name == name; });
        if (!known) return host::failure(ErrorCode::InvalidArgument, "unknown argument: {}", name);
        values[name] = word.substr(equals + 1);
    }
    return values;
}

std::optional<std::string> missing_values(const yaml::Node& root, const XTopo& x_topo, const Values& provided) {
    std::string text;
    for (const Parameter& parameter : x_topo.parameters) {
        if (satisfied(parameter, root, provided)) continue;
        text += fmt::format("\n  {}:", parameter.name);
        if (!parameter.description.empty()) text += fmt::format("\n    description: {}", parameter.description);
        if (parameter.example) text += fmt::format("\n    example: {}", *parameter.example);
        const std::vector<std::string> current = current_values(root, parameter.name);
        if (!current.empty()) text += fmt::format("\n    # current: {}", json_list(current));
    }
    if (text.empty()) return std::nullopt;
    return "missing value(s) for required parameters:" + text;
}

host::Result<Values> resolve_values(const yaml::Node& root, const XTopo& x_topo, const std::vector<std::string>& words,
                                    const Prompt& prompt) {
    TRY_ASSIGN(Values values, parse_values(words, x_topo));
    const bool done = !words.empty() && !missing_values(root, x_topo, values);
    if (!done && prompt) {
        for (const Parameter& parameter : x_topo.parameters) {
            if (values.contains(parameter.name)) continue;
            const auto answer = prompt(parameter, current_values(root, parameter.name));
            if (!answer) break;
            const std::string_view text = trimmed(*answer);
            if (!text.empty()) values[parameter.name] = std::string(text);
        }
    }
    if (const auto missing = missing_values(root, x_topo, values))
        return host::failure(ErrorCode::InvalidArgument, "{}", *missing);
    return values;
}

}  // namespace talpa::topo
