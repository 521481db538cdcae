#include "topo/project/compose_merge.h"

#include <algorithm>

#include "topo/project/compose_keys.h"
#include "topo/system/text.h"

namespace talpa::topo {
namespace {

using yaml::Entry;
using yaml::Kind;
using yaml::Node;
using yaml::NodePtr;

bool fits(const Node& node, Shape shape) {
    if (is_null(node)) return true;
    switch (shape) {
        case Shape::Any:
            return true;
        case Shape::Scalar:
            return node.is_scalar();
        case Shape::List:
            return node.is_sequence();
        case Shape::TextOrList:
            return node.is_sequence() || node.is_scalar();
        case Shape::Mapping:
            return node.is_mapping();
        case Shape::MapOrList:
        case Shape::ListOrMap:
            return node.is_sequence() || node.is_mapping();
    }
    return false;
}

std::string_view wanted(Shape shape) {
    switch (shape) {
        case Shape::Scalar:
            return "one value";
        case Shape::List:
            return "a list";
        case Shape::TextOrList:
            return "a text or a list";
        case Shape::Mapping:
            return "a mapping";
        case Shape::MapOrList:
        case Shape::ListOrMap:
            return "a mapping or a list";
        case Shape::Any:
            break;
    }
    return "something else";
}

// "- NAME=value" (or "NAME:address" for hosts) to "NAME: value"; a bare NAME has no value.
void list_to_mapping(Node& node, bool hosts) {
    Node mapping;
    mapping.kind = Kind::Mapping;
    mapping.mark = node.mark;
    for (const NodePtr& item : node.items) {
        const std::size_t equals = item->value.find_first_of(hosts ? "=:" : "=");
        const std::string name = item->value.substr(0, equals);
        NodePtr value = equals == std::string::npos ? yaml::make_scalar("", item->mark, yaml::Style::Plain)
                                                    : yaml::make_scalar(item->value.substr(equals + 1), item->mark);
        entry_of(mapping, name, item->mark) = std::move(value);
    }
    mapping.tag = node.tag;
    node = std::move(mapping);
}

void names_to_mapping(Node& node) {
    Node mapping;
    mapping.kind = Kind::Mapping;
    mapping.mark = node.mark;
    mapping.tag = node.tag;
    for (const NodePtr& item : node.items) entry_of(mapping, item->value, item->mark) = make_mapping(item->mark);
    node = std::move(mapping);
}

Checked<void> check_key(Entry& entry, std::span<const ComposeKey> keys, const std::string& path,
                        const std::string& file) {
    const std::string& name = entry.key->value;
    if (name.starts_with("x-")) return {};
    const ComposeKey* key = find_key(keys, name);
    if (key == nullptr)
        return finding("compose.schema", file, entry.key->mark,
                       fmt::format("{} additional properties '{}' not allowed", path, name),
                       "remove the key, or start its name with x-");
    Node& value = *entry.value;
    if (value.tag == "!reset") return {};
    if (!fits(value, key->shape))
        return finding(
            "compose.schema", file, value.mark,
            fmt::format("{}.{} must be {}, not {}", path, name, wanted(key->shape), yaml::name_of_type(value)));
    const bool list = value.is_sequence();
    if (list)
        for (const NodePtr& item : value.items)
            if (key->shape == Shape::MapOrList && !item->is_scalar())
                return finding("compose.schema", file, item->mark,
                               fmt::format("{}.{} must hold texts, not {}", path, name, yaml::name_of_type(*item)));
    if (list && key->shape == Shape::MapOrList) list_to_mapping(value, name == "extra_hosts");
    if (list && key->shape == Shape::ListOrMap) names_to_mapping(value);
    return {};
}

Checked<void> check_keys(Node& node, std::span<const ComposeKey> keys, const std::string& path, const std::string& file,
                         const Findings& findings) {
    for (std::size_t i = 0; i < node.entries.size();) {
        auto right = check_key(node.entries[i], keys, path, file);
        if (right) {
            ++i;
            continue;
        }
        TRY(findings.take(std::move(right)));
        node.entries.erase(node.entries.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return {};
}

bool is_url(std::string_view context) {
    return context.find("://") != std::string_view::npos || context.starts_with("git@") ||
           context.starts_with("github.com/");
}

std::string absolute(const std::string& path, const std::filesystem::path& folder) {
    if (path.starts_with("~/") || path == "~") return environment("HOME") + path.substr(1);
    std::filesystem::path full = (folder / path).lexically_normal();
    std::string text = full.string();
    if (text.size() > 1 && text.ends_with('/')) text.pop_back();
    return text;
}

void absolute_paths_of_build(Node& build, const std::filesystem::path& folder) {
    if (Node* context = const_cast<Node*>(build.own("context")); context != nullptr && !is_url(context->value))
        context->value = absolute(context->value, folder);
    if (const Node* contexts = build.own("additional_contexts"))
        for (const Entry& entry : contexts->entries) {
            std::string& value = entry.value->value;
            const bool named = value.find(':') != std::string::npos;  // service:, docker-image://, https://, …
            if (!named) value = absolute(value, folder);
        }
}

void absolute_env_files(Node& env_file, const std::filesystem::path& folder) {
    if (env_file.is_scalar()) env_file.value = absolute(env_file.value, folder);
    for (const NodePtr& item : env_file.items) {
        if (item->is_scalar()) item->value = absolute(item->value, folder);
        if (Node* path = const_cast<Node*>(item->own("path"))) path->value = absolute(path->value, folder);
    }
}

void absolute_volumes(Node& volumes, const std::filesystem::path& folder) {
    for (const NodePtr& item : volumes.items) {
        Node* source = item->is_scalar() ? item.get() : const_cast<Node*>(item->own("source"));
        if (source == nullptr || !(source->value.starts_with('.') || source->value.starts_with('~'))) continue;
        const std::size_t colon = item->is_scalar() ? source->value.find(':') : std::string::npos;
        const std::string rest = colon == std::string::npos ? "" : source->value.substr(colon);
        source->value = absolute(source->value.substr(0, colon), folder) + rest;
    }
}

Join join_of(std::span<const ComposeKey> keys, std::string_view name) {
    const ComposeKey* key = find_key(keys, name);
    return key == nullptr ? Join::Deep : key->join;
}

void merge_values(NodePtr& base, const NodePtr& over, Join join, int depth);

// Nothing has a table below this level: mappings join, lists and scalars are replaced.
void merge_mappings(Node& base, const Node& over, std::span<const ComposeKey> keys, int depth) {
    for (const Entry& entry : over.entries) {
        const std::string& name = entry.key->value;
        if (entry.value->tag == "!reset") {
            std::erase_if(base.entries, [&](const Entry& e) { return e.key->value == name; });
            continue;
        }
        const auto found = std::find_if(base.entries.begin(), base.entries.end(),
                                        [&](const Entry& e) { return e.key->value == name; });
        if (found == base.entries.end()) {
            base.entries.push_back(entry);
            continue;
        }
        if (name == "build" && !keys.empty() && found->value->is_mapping() && entry.value->is_mapping()) {
            auto joined = std::make_shared<Node>(*found->value);
            merge_mappings(*joined, *entry.value, build_keys(), depth + 1);
            found->value = std::move(joined);
            continue;
        }
        merge_values(found->value, entry.value, keys.empty() ? Join::Deep : join_of(keys, name), depth);
    }
}

void merge_values(NodePtr& base, const NodePtr& over, Join join, int depth) {
    const bool joinable = base->kind == over->kind && over->tag != "!override" && depth < yaml::kMaxDepth;
    if (!joinable || join == Join::Replace || base->is_scalar()) {
        base = over;
        return;
    }
    auto joined = std::make_shared<Node>(*base);
    if (base->is_mapping()) {
        merge_mappings(*joined, *over, {}, depth + 1);
    } else if (join == Join::Append) {
        for (const NodePtr& item : over->items) {
            const bool twice = item->is_scalar() &&
                               std::any_of(joined->items.begin(), joined->items.end(),
                                           [&](const NodePtr& n) { return n->is_scalar() && n->value == item->value; });
            if (!twice) joined->items.push_back(item);
        }
    } else {
        *joined = *over;
    }
    base = std::move(joined);
}

}  // namespace

NodePtr make_mapping(Mark mark) {
    auto node = std::make_shared<Node>();
    node->kind = Kind::Mapping;
    node->mark = mark;
    return node;
}

NodePtr& entry_of(Node& mapping, std::string_view key, Mark mark) {
    for (Entry& entry : mapping.entries)
        if (entry.key->value == key) return entry.value;
    mapping.entries.push_back({yaml::make_scalar(std::string(key), mark), make_mapping(mark)});
    return mapping.entries.back().value;
}

Checked<void> normalise_service(Node& service, const std::string& name, const std::string& file,
                                const std::filesystem::path& folder, const Findings& findings) {
    const std::string path = "services." + name;
    if (!service.is_mapping())
        return finding("compose.schema", file, service.mark,
                       fmt::format("{} must be a mapping, not {}", path, yaml::name_of_type(service)));
    if (Node* build = const_cast<Node*>(service.own("build"))) {
        if (build->is_scalar() && !is_null(*build)) {
            NodePtr mapping = make_mapping(build->mark);
            entry_of(*mapping, "context", build->mark) = yaml::make_scalar(build->value, build->mark);
            *build = *mapping;
        }
        if (!build->is_mapping() && build->tag != "!reset")
            return finding(
                "compose.schema", file, build->mark,
                fmt::format("{}.build must be a text or a mapping, not {}", path, yaml::name_of_type(*build)));
        TRY(check_keys(*build, build_keys(), path + ".build", file, findings));
        absolute_paths_of_build(*build, folder);
    }
    TRY(check_keys(service, service_keys(), path, file, findings));
    if (Node* env_file = const_cast<Node*>(service.own("env_file"))) absolute_env_files(*env_file, folder);
    if (Node* volumes = const_cast<Node*>(service.own("volumes"))) absolute_volumes(*volumes, folder);
    return {};
}

void merge_service(Node& base, const Node& over) {
    merge_mappings(base, over, service_keys(), 0);
}

void merge_root(Node& base, const Node& over) {
    for (const Entry& entry : over.entries) {
        const std::string& name = entry.key->value;
        if (name == "services" && entry.value->is_mapping()) {
            NodePtr& services = entry_of(base, "services", entry.key->mark);
            for (const Entry& service : entry.value->entries) {
                const bool known = services->own(service.key->value) != nullptr;
                NodePtr& place = entry_of(*services, service.key->value, service.key->mark);
                if (known && place->is_mapping() && service.value->is_mapping())
                    merge_service(*place, *service.value);
                else
                    place = service.value;
            }
            continue;
        }
        const bool known = base.own(name) != nullptr;
        NodePtr& place = entry_of(base, name, entry.key->mark);
        if (known)
            merge_values(place, entry.value, join_of(root_keys(), name), 0);
        else
            place = entry.value;
    }
}

}  // namespace talpa::topo
