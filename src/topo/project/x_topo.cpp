#include "topo/project/x_topo.h"

#include "topo/system/text.h"

namespace talpa::topo {
namespace {

using yaml::Node;
using yaml::ScalarType;

Finding type_error(const std::string& file, const Node& node, std::string_view path, std::string_view wanted) {
    return {"xtopo.type",
            Severity::Error,
            file,
            node.mark,
            fmt::format("{} must be {}, not {}", path, wanted, yaml::name_of_type(node)),
            {}};
}

// Any scalar is taken for a text, as the Go decoder does.
Checked<std::string> text_in(const Node& mapping, const char* key, std::string_view path, const std::string& file) {
    const Node* node = mapping.find(key);
    if (node == nullptr || is_null(*node)) return std::string();
    if (!node->is_scalar()) return std::unexpected(type_error(file, *node, fmt::format("{}.{}", path, key), "a text"));
    return node->value;
}

Checked<bool> bool_in(const Node& mapping, const char* key, std::string_view path, const std::string& file) {
    const Node* node = mapping.find(key);
    if (node == nullptr || is_null(*node)) return false;
    if (node->is_scalar() && node->style == yaml::Style::Plain) {
        const std::string word = lower(node->value);
        if (word == "true" || word == "yes" || word == "on" || word == "y") return true;
        if (word == "false" || word == "no" || word == "off" || word == "n") return false;
    }
    return std::unexpected(type_error(file, *node, fmt::format("{}.{}", path, key), "true or false"));
}

Checked<void> read_parameters(const Node& from, std::string_view path, const std::string& file, XTopo& to) {
    if (is_null(from)) return {};
    if (!from.is_mapping()) return std::unexpected(type_error(file, from, path, "a mapping of names to parameters"));
    TRY_ASSIGN(const yaml::NodePtr all, yaml::expand(from, file));
    for (const yaml::Entry& entry : all->entries) {
        const Node& node = *entry.value;
        const std::string here = fmt::format("{}.{}", path, entry.key->value);
        Parameter parameter;
        parameter.name = entry.key->value;
        parameter.mark = entry.key->mark;
        if (!is_null(node)) {
            if (!node.is_mapping()) return std::unexpected(type_error(file, node, here, "a mapping"));
            TRY_ASSIGN(parameter.description, text_in(node, "description", here, file));
            TRY_ASSIGN(parameter.required, bool_in(node, "required", here, file));
            if (const Node* example = node.find("example"); example != nullptr && !is_null(*example)) {
                TRY_ASSIGN(parameter.example, text_in(node, "example", here, file));
            }
        }
        to.parameters.push_back(std::move(parameter));
    }
    return {};
}

// --- the schema ---

class SchemaCheck {
  public:
    SchemaCheck(const std::string& file, std::vector<Finding>& findings) : file_(file), findings_(findings) {}

    void x_topo(const Node& node) {
        if (!node.is_mapping()) return wrong_type(node, "x-topo", "a mapping");
        const Node* name = node.find("name");
        if (name == nullptr)
            add("xtopo.name.missing", node.mark, "x-topo has no name", "add `name: NAME` below x-topo");
        else
            is_text(*name, "x-topo.name");
        for (const char* key : {"description", "deployment_success_message"})
            if (const Node* text = node.find(key)) is_text(*text, fmt::format("x-topo.{}", key));
        if (const Node* features = node.find("features")) texts(*features, "x-topo.features");
        if (const Node* all = node.find("parameters")) parameters(*all);
        const Node* args = node.find("args");
        if (args != nullptr && (node.find("parameters") == nullptr || node.find("parameters")->entries.empty()))
            add("xtopo.args.deprecated", args->mark, "x-topo.args is deprecated", "rename it to `parameters`",
                Severity::Warning);
    }

  private:
    void parameters(const Node& node) {
        if (!node.is_mapping()) return wrong_type(node, "x-topo.parameters", "a mapping of names to parameters");
        const auto all = yaml::expand(node, file_);
        if (!all) return findings_.push_back(all.error());
        for (const yaml::Entry& entry : (*all)->entries) parameter(entry);
    }

    void parameter(const yaml::Entry& entry) {
        const std::string path = "x-topo.parameters." + entry.key->value;
        const Node& node = *entry.value;
        if (!node.is_mapping()) return wrong_type(node, path, "a mapping");
        for (const yaml::Entry& field : node.entries) {
            const std::string& key = field.key->value;
            const std::string where = path + "." + key;
            if (key == "description" || key == "example")
                is_text(*field.value, where);
            else if (key == "required")
                is_bool(*field.value, where);
            else if (key == "hints")
                hints(*field.value, where);
            else if (key == "default")
                add("xtopo.parameter.default", field.key->mark, where + " is ignored since release 12",
                    "put the value into build.args", Severity::Note);
            else
                add("xtopo.parameter.unknown-key", field.key->mark, fmt::format("{} is no field of a parameter", where),
                    "a parameter has description, required, example and hints");
        }
    }

    void hints(const Node& node, const std::string& path) {
        if (!node.is_mapping()) return wrong_type(node, path, "a mapping");
        for (const yaml::Entry& hint : node.entries) {
            const std::string& key = hint.key->value;
            if (!is_hint_key(key))
                add("xtopo.hint.key", hint.key->mark, fmt::format("the hint key '{}' is not dotted lower case", key),
                    "write it like meta.type or model.task");
            const Node& value = *hint.value;
            const auto simple = [](const Node& n) { return n.is_scalar() && !is_null(n); };
            bool good = simple(value);
            if (value.is_sequence()) {
                good = true;
                for (const yaml::NodePtr& item : value.items) good = good && simple(*item);
            }
            if (!good) wrong_type(value, path + "." + key, "a text, a number, a boolean or a list of those");
        }
    }

    void is_text(const Node& node, const std::string& path) {
        if (!node.is_scalar() || yaml::type_of(node) != ScalarType::String) wrong_type(node, path, "a text");
    }
    void is_bool(const Node& node, const std::string& path) {
        if (!node.is_scalar() || yaml::type_of(node) != ScalarType::Bool) wrong_type(node, path, "true or false");
    }
    void texts(const Node& node, const std::string& path) {
        if (!node.is_sequence()) return wrong_type(node, path, "a list of texts");
        for (std::size_t i = 0; i < node.items.size(); ++i)
            is_text(node.items[i]->real(), fmt::format("{}[{}]", path, i));
    }
    void wrong_type(const Node& node, std::string_view path, std::string_view wanted) {
        findings_.push_back(type_error(file_, node, path, wanted));
    }
    void add(std::string code, Mark mark, std::string message, std::string fix, Severity severity = Severity::Error) {
        findings_.push_back({std::move(code), severity, file_, mark, std::move(message), std::move(fix)});
    }

    const std::string& file_;
    std::vector<Finding>& findings_;
};

}  // namespace

bool is_hint_key(std::string_view key) {
    const std::vector<std::string> parts = split(key, ".");
    if (parts.size() < 2) return false;
    for (const std::string& part : parts) {
        if (part.empty() || part[0] < 'a' || part[0] > 'z') return false;
        if (part.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") != std::string::npos) return false;
    }
    return true;
}

Checked<XTopo> read_x_topo(const Node& root, const std::string& file) {
    XTopo to;
    if (!root.is_mapping())
        return finding("compose.schema", file, root.mark,
                       fmt::format("the file must be a mapping, not {}", yaml::name_of_type(root)));
    const Node* node = root.find("x-topo");
    if (node == nullptr || is_null(*node)) return to;
    if (!node->is_mapping()) return std::unexpected(type_error(file, *node, "x-topo", "a mapping"));
    to.present = true;
    TRY_ASSIGN(to.name, text_in(*node, "name", "x-topo", file));
    TRY_ASSIGN(to.description, text_in(*node, "description", "x-topo", file));
    if (const Node* features = node->find("features"); features != nullptr && !is_null(*features)) {
        if (!features->is_sequence())
            return std::unexpected(type_error(file, *features, "x-topo.features", "a list of texts"));
        for (const yaml::NodePtr& item : features->items) {
            if (!item->real().is_scalar())
                return std::unexpected(type_error(file, *item, "a feature of x-topo", "a text"));
            to.features.push_back(item->real().value);
        }
    }
    if (const Node* parameters = node->find("parameters"))
        TRY(read_parameters(*parameters, "x-topo.parameters", file, to));
    if (const Node* args = node->find("args"); to.parameters.empty() && args != nullptr) {
        TRY(read_parameters(*args, "x-topo.args", file, to));
        to.deprecated_args = !to.parameters.empty();
    }
    return to;
}

void check_x_topo(const Node& root, const std::string& file, std::vector<Finding>& findings) {
    const Node* node = root.find("x-topo");
    if (node != nullptr) SchemaCheck(file, findings).x_topo(*node);
}

}  // namespace talpa::topo
