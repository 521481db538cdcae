#include "topo/project/edit.h"

#include <algorithm>
#include <map>

#include "topo/system/text.h"

namespace talpa::topo {
namespace {

using yaml::Entry;
using yaml::Kind;
using yaml::Node;
using yaml::NodePtr;

struct Change {
    std::size_t begin, end;
    std::string text;
};

bool has_control(std::string_view value) {
    return std::any_of(value.begin(), value.end(),
                       [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
}

bool plain_is_safe(std::string_view value, bool in_flow) {
    if (value.empty() || trimmed(value) != value || has_control(value) || yaml::plain_is_ambiguous(value)) return false;
    if (std::string_view("-?:,[]{}#&*!|>'\"%@`=").find(value.front()) != std::string_view::npos) return false;
    if (value.find(": ") != std::string_view::npos || value.find(" #") != std::string_view::npos ||
        value.back() == ':' || value.starts_with("..."))
        return false;
    // NEL, LS, PS and the byte order mark are line ends or worse to YAML 1.1.
    for (const std::string_view odd : {"\xC2\x85", "\xE2\x80\xA8", "\xE2\x80\xA9", "\xEF\xBB\xBF"})
        if (value.find(odd) != std::string_view::npos) return false;
    return !in_flow || value.find_first_of(",[]{}:") == std::string_view::npos;
}

std::string double_quoted(std::string_view value) {
    std::string out = "\"";
    for (std::size_t i = 0; i < value.size(); ++i) {
        const char c = value[i];
        if (c == '"' || c == '\\')
            out += fmt::format("\\{}", c);
        else if (c == '\n')
            out += "\\n";
        else if (c == '\t')
            out += "\\t";
        else if (c == '\r')
            out += "\\r";
        else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F)
            out += fmt::format("\\x{:02X}", static_cast<unsigned>(c));
        else if (value.substr(i).starts_with("\xC2\x85"))
            out += "\\N", ++i;
        else if (value.substr(i).starts_with("\xE2\x80\xA8"))
            out += "\\L", i += 2;
        else if (value.substr(i).starts_with("\xE2\x80\xA9"))
            out += "\\P", i += 2;
        else if (value.substr(i).starts_with("\xEF\xBB\xBF"))
            out += "\\uFEFF", i += 2;
        else
            out += c;
    }
    return out + "\"";
}

class Editor {
  public:
    Editor(const std::string& text, const Values& values, const Node& root) : text_(text), values_(values) {
        collect_aliases(root);
    }

    // First pass: values that stand in build.args themselves.
    std::vector<Change> direct(const Node& root) {
        each_args(root, [&](const Node& args, const Entry*) {
            for (const auto& [name, value] : values_) {
                if (args.is_mapping()) in_mapping(args, name, value);
                if (args.is_sequence()) in_sequence(args, name, value);
            }
        });
        return take();
    }

    // Second pass: what is still different comes from elsewhere (an alias, a merge) and gets a copy of its own.
    std::vector<Change> private_copies(const Node& root) {
        each_args(root, [&](const Node& args, const Entry* entry) {
            for (const auto& [name, value] : values_) {
                if (args.is_mapping()) {
                    const Node* found = args.find(name);
                    if (found == nullptr || (found->is_scalar() && found->value == value)) continue;
                } else if (!sequence_differs(args, name, value)) {
                    continue;
                }
                if (entry != nullptr && entry->value->kind == Kind::Alias)
                    replace(entry->value->begin, entry->value->end, copy_of(args));
                else if (args.is_mapping() && !args.entries.empty())
                    insert_entry(args, name, value);
            }
        });
        return take();
    }

  private:
    template <typename F>
    static void each_args(const Node& root, F&& f) {
        const Node* services = root.find("services");
        if (services == nullptr) return;
        for (const Entry& service : services->entries) {
            const Node* build = service.value->real().find("build");
            const Node* args = build == nullptr ? nullptr : build->find("args");
            if (args == nullptr) continue;
            const Entry* own = nullptr;
            for (const Entry& entry : build->entries)
                if (entry.key->value == "args") own = &entry;
            f(*args, own);
        }
    }

    // An alias is left to the second pass: its target may serve others than build args.
    void in_mapping(const Node& args, const std::string& name, const std::string& value) {
        if (is_shared(args)) return;
        for (const Entry& entry : args.entries) {
            if (entry.key->value != name) continue;
            const Node& written = *entry.value;
            if (written.kind == Kind::Alias) {
                if (written.target->is_scalar() && written.target->value == value) continue;
                replace(written.begin, written.end, yaml_scalar(value, yaml::Style::Plain, args.flow));
            } else {
                replace_scalar(written, value, args.flow);
            }
        }
    }

    void in_sequence(const Node& args, const std::string& name, const std::string& value) {
        if (is_shared(args)) return;
        for (const NodePtr& item : args.items) {
            const Node& node = item->real();
            if (!node.is_scalar() || (node.value != name && !node.value.starts_with(name + "="))) continue;
            const std::string wanted = name + "=" + value;
            if (node.value == wanted) continue;
            if (item->kind == Kind::Alias)
                replace(item->begin, item->end, yaml_scalar(wanted, yaml::Style::Plain, args.flow));
            else
                replace_scalar(node, wanted, args.flow);
        }
    }

    // Do these args stand outside of `services`, so that others may use them too?
    [[nodiscard]] bool is_shared(const Node& args) const {
        return args.begin < services_begin_ || args.end > services_end_;
    }

    void replace_scalar(const Node& written, const std::string& value, bool in_flow) {
        if (!written.is_scalar()) return;
        if (written.value == value && yaml::type_of(written) == yaml::ScalarType::String) return;
        std::size_t end = written.end;
        while (end > written.begin && std::string_view(" \t\r\n").find(text_[end - 1]) != std::string_view::npos) --end;
        // Others that mean this value by its anchor keep the old one: the anchor goes to the first of them.
        const bool moves = !written.anchor.empty() && aliases_.contains(&written);
        if (moves) moved_.push_back(&written);
        std::string anchor = written.anchor.empty() || moves ? "" : "&" + written.anchor + " ";
        const bool block = written.style == yaml::Style::Literal || written.style == yaml::Style::Folded;
        std::string scalar = anchor + yaml_scalar(value, block ? yaml::Style::DoubleQuoted : written.style, in_flow);
        if (end == written.begin) {  // `NAME:` with nothing behind it, or in {NAME}
            std::size_t before = written.begin;
            while (before > 0 && std::string_view(" \t\r\n").find(text_[before - 1]) != std::string_view::npos)
                --before;
            const bool colon = before > 0 && text_[before - 1] == ':';
            replace(before, before, (colon ? " " : ": ") + scalar);
            return;
        }
        replace(written.begin, end, std::move(scalar));
    }

    [[nodiscard]] static bool sequence_differs(const Node& args, const std::string& name, const std::string& value) {
        return std::any_of(args.items.begin(), args.items.end(), [&](const NodePtr& item) {
            const std::string& text = item->real().value;
            return text == name || (text.starts_with(name + "=") && text != name + "=" + value);
        });
    }

    // The args with the values put in, as a flow collection on one line.
    [[nodiscard]] std::string copy_of(const Node& args) const {
        std::string out;
        if (args.is_sequence()) {
            for (const NodePtr& item : args.items) {
                std::string text = item->real().value;
                for (const auto& [name, value] : values_)
                    if (text == name || text.starts_with(name + "=")) text = name + "=" + value;
                out += (out.empty() ? "" : ", ") + yaml_scalar(text, yaml::Style::Plain, true);
            }
            return "[" + out + "]";
        }
        const auto expanded = yaml::expand(args, "");
        if (!expanded) return {};
        for (const Entry& entry : (*expanded)->entries) {
            const auto given = values_.find(entry.key->value);
            const Node& old = *entry.value;
            std::string value;
            if (given != values_.end())
                value = yaml_scalar(given->second, old.style, true);
            else if (yaml::type_of(old) == yaml::ScalarType::Null)
                value = "null";
            else if (yaml::type_of(old) != yaml::ScalarType::String)
                value = old.value;
            else
                value = yaml_scalar(old.value, old.style, true);
            out += fmt::format("{}{}: {}", out.empty() ? "" : ", ",
                               yaml_scalar(entry.key->value, yaml::Style::Plain, true), value);
        }
        return "{" + out + "}";
    }

    // A key of its own in front of the others wins over what `<<` brings.
    void insert_entry(const Node& args, const std::string& name, const std::string& value) {
        const Node& first = *args.entries.front().key;
        const std::string entry = fmt::format("{}: {}", yaml_scalar(name, yaml::Style::Plain, args.flow),
                                              yaml_scalar(value, yaml::Style::Plain, args.flow));
        if (args.flow) return replace(first.begin, first.begin, entry + ", ");
        std::size_t line = first.begin;
        while (line > 0 && text_[line - 1] != '\n') --line;
        const char* end = text_.find("\r\n") != std::string::npos ? "\r\n" : "\n";
        replace(first.begin, first.begin, entry + end + std::string(first.begin - line, ' '));
    }

    void replace(std::size_t begin, std::size_t end, std::string text) {
        const bool known = std::any_of(changes_.begin(), changes_.end(), [&](const Change& c) {
            return c.begin == begin && c.end == end && (begin != end || c.text == text);
        });
        if (!known) changes_.push_back({begin, end, std::move(text)});
    }

    void collect_aliases(const Node& node) {
        if (node.kind == Kind::Alias) return aliases_[node.target.get()].push_back(&node);
        for (const NodePtr& item : node.items) collect_aliases(*item);
        for (const Entry& entry : node.entries) collect_aliases(*entry.value);
    }

    // The value as it stood, for another place: a block text becomes a quoted one.
    [[nodiscard]] std::string old_text(const Node& scalar) const {
        const bool block = scalar.style == yaml::Style::Literal || scalar.style == yaml::Style::Folded;
        if (block) return yaml_scalar(scalar.value, yaml::Style::DoubleQuoted, true);
        std::string text = text_.substr(scalar.begin, scalar.end - scalar.begin);
        const std::string anchor = "&" + scalar.anchor;
        if (const std::size_t at = text.find(anchor); at != std::string::npos) text.erase(at, anchor.size());
        text = std::string(trimmed(text));
        const bool flow_unsafe = scalar.style == yaml::Style::Plain && text.find_first_of(",[]{}") != std::string::npos;
        return flow_unsafe ? yaml_scalar(scalar.value, yaml::Style::DoubleQuoted, true) : text;
    }

    std::vector<Change> take() {
        for (const Node* scalar : moved_)
            for (const Node* alias : aliases_.at(scalar)) {
                const bool replaced = std::any_of(changes_.begin(), changes_.end(), [&](const Change& c) {
                    return c.begin <= alias->begin && alias->end <= c.end && c.begin != c.end;
                });
                if (replaced) continue;
                replace(alias->begin, alias->end, "&" + scalar->anchor + " " + old_text(*scalar));
                break;
            }
        return std::move(changes_);
    }

  public:
    void set_services(const Node& services) {
        services_begin_ = services.begin;
        services_end_ = services.end;
    }

  private:
    const std::string& text_;
    const Values& values_;
    std::size_t services_begin_ = 0, services_end_ = 0;
    std::map<const Node*, std::vector<const Node*>> aliases_;  // by what they mean, in the order of the file
    std::vector<const Node*> moved_;                           // values whose anchor others use
    std::vector<Change> changes_;
};

std::string with_changes(std::string text, std::vector<Change> changes) {
    std::stable_sort(changes.begin(), changes.end(), [](const auto& a, const auto& b) { return a.begin > b.begin; });
    for (const Change& change : changes) text.replace(change.begin, change.end - change.begin, change.text);
    return text;
}

void warn_about(const Node& root, const Values& values, std::vector<std::string>& warnings) {
    for (const auto& [name, value] : values)
        if (current_values(root, name).empty())
            warnings.push_back(fmt::format("arg \"{}\" was resolved but not found in any service build args", name));
    const Node* services = root.find("services");
    if (services == nullptr) return;
    for (const Entry& service : services->entries) {
        const Node& node = service.value->real();
        const Node* build = node.find("build");
        if (node.find("extends") != nullptr && (build == nullptr || build->find("args") == nullptr))
            warnings.push_back(
                fmt::format("service \"{}\" uses `extends` without `build.args`; inherited build args "
                            "will not be configured. Declare the args in this file to configure them",
                            service.key->value));
    }
}

}  // namespace

std::string yaml_scalar(std::string_view value, yaml::Style style, bool in_flow) {
    if (style == yaml::Style::Plain && plain_is_safe(value, in_flow)) return std::string(value);
    const bool odd = has_control(value) || value.find("\xC2\x85") != value.npos ||
                     value.find("\xE2\x80\xA8") != value.npos || value.find("\xE2\x80\xA9") != value.npos ||
                     value.find("\xEF\xBB\xBF") != value.npos;
    if (style == yaml::Style::SingleQuoted && !odd) {
        std::string out = "'";
        for (const char c : value) {
            if (c == '\'') out += '\'';
            out += c;
        }
        return out + "'";
    }
    return double_quoted(value);
}

host::Result<Edited> apply_values(std::string text, const std::string& file, const Values& values) {
    Edited edited{.text = std::move(text), .changed = false, .warnings = {}};
    for (int pass = 0; pass < 2; ++pass) {
        TRY_ASSIGN(const NodePtr root, yaml::parse_first(edited.text, file));
        if (pass == 0) warn_about(*root, values, edited.warnings);
        Editor editor(edited.text, values, *root);
        const Node* services = root->find("services");
        if (services == nullptr) break;
        editor.set_services(*services);
        std::vector<Change> changes = pass == 0 ? editor.direct(*root) : editor.private_copies(*root);
        if (changes.empty()) continue;
        edited.text = with_changes(std::move(edited.text), std::move(changes));
        edited.changed = true;
    }
    if (!edited.changed) return edited;
    TRY_ASSIGN(const NodePtr root, host::with_context(
                                       [&]() -> host::Result<NodePtr> {
                                           TRY_ASSIGN(NodePtr again, yaml::parse_first(edited.text, file));
                                           return again;
                                       }(),
                                       "checking the edited file (it was not written)"));
    for (const auto& [name, value] : values)
        for (const std::string& now : current_values(*root, name))
            if (now != value)
                return host::failure(ErrorCode::NotSupported,
                                     "{}: build arg {} is written in a way that cannot be edited; set it by hand", file,
                                     name);
    return edited;
}

}  // namespace talpa::topo
