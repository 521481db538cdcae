#include "topo/project/compose_load.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/host/file.h"
#include "topo/project/compose_keys.h"
#include "topo/project/compose_merge.h"

namespace talpa::topo {
namespace {

using yaml::Entry;
using yaml::Node;
using yaml::NodePtr;

constexpr std::size_t kMaxFiles = 100;

class Loader {
  public:
    Loader(const Variables& variables, const Findings& findings) : variables_(variables), findings_(findings) {}

    // A whole file: documents joined, includes read, services normalised, extends followed.
    Checked<NodePtr> root(const std::filesystem::path& path) {
        TRY_ASSIGN(NodePtr tree, file(path));
        TRY(includes(*tree, path));
        const Node* services = tree->own("services");
        if (services == nullptr || !services->is_mapping()) return tree;
        std::vector<std::string> names;
        for (const Entry& entry : services->entries) names.push_back(entry.key->value);
        for (const std::string& name : names) {
            std::vector<std::string> chain;
            TRY_ASSIGN(NodePtr resolved, service(path, name, chain));
            resolved_[name] = resolved;
        }
        for (const std::string& name : names) entry_of(*entry_of(*tree, "services"), name) = resolved_[name];
        return tree;
    }

  private:
    // The documents of a file, interpolated and joined; its services normalised. Read once.
    Checked<NodePtr> file(const std::filesystem::path& path) {
        const std::string name = path.string();
        if (const auto known = files_.find(name); known != files_.end()) return known->second;
        if (files_.size() >= kMaxFiles)
            return finding("compose.extends", name, {}, fmt::format("more than {} files", kMaxFiles));
        const auto text = host::read_text(path, yaml::kMaxBytes);
        if (!text) return finding("compose.read", name, {}, text.error().message);
        TRY_ASSIGN(const std::vector<NodePtr> documents, yaml::parse_all(*text, name));
        NodePtr joined;
        for (const NodePtr& document : documents) {
            TRY_ASSIGN(NodePtr tree, yaml::expand(*document, name));
            if (!tree->is_mapping())
                return finding(
                    "compose.schema", name, tree->mark,
                    fmt::format("the top-level object must be a mapping, not {}", yaml::name_of_type(*tree)));
            TRY(interpolate_values(*tree, name));
            TRY(check_root(*tree, name));
            if (Node* services = const_cast<Node*>(tree->own("services"))) TRY(normalise(*services, name, path));
            if (joined == nullptr)
                joined = tree;
            else
                merge_root(*joined, *tree);
        }
        files_[name] = joined;
        return joined;
    }

    Checked<void> interpolate_values(Node& node, const std::string& name) {
        if (node.is_scalar()) {
            TRY_ASSIGN(node.value, interpolate(node.value, variables_, name, node.mark));
            return {};
        }
        for (const NodePtr& item : node.items) TRY(interpolate_values(*item, name));
        for (const Entry& entry : node.entries) TRY(interpolate_values(*entry.value, name));
        return {};
    }

    // Where all findings are wanted, what is wrong is left out of what is read.
    Checked<void> normalise(Node& services, const std::string& name, const std::filesystem::path& path) {
        for (std::size_t i = 0; i < services.entries.size();) {
            const Entry& entry = services.entries[i];
            auto right = normalise_service(*entry.value, entry.key->value, name, path.parent_path(), findings_);
            if (right) {
                ++i;
                continue;
            }
            TRY(findings_.take(std::move(right)));
            services.entries.erase(services.entries.begin() + static_cast<std::ptrdiff_t>(i));
        }
        return {};
    }

    Checked<void> check_root(Node& tree, const std::string& name) {
        for (std::size_t i = 0; i < tree.entries.size();) {
            auto right = check_root_key(tree.entries[i], name);
            if (right) {
                ++i;
                continue;
            }
            TRY(findings_.take(std::move(right)));
            tree.entries.erase(tree.entries.begin() + static_cast<std::ptrdiff_t>(i));
        }
        return {};
    }

    static Checked<void> check_root_key(const Entry& entry, const std::string& name) {
        const std::string& key = entry.key->value;
        if (key.starts_with("x-")) return {};
        const ComposeKey* known = find_key(root_keys(), key);
        if (known == nullptr)
            return finding("compose.schema", name, entry.key->mark,
                           fmt::format("(root) additional properties '{}' not allowed", key),
                           "remove the key, or start its name with x-");
        const Node& value = *entry.value;
        const bool null = value.is_scalar() && yaml::type_of(value) == yaml::ScalarType::Null;
        const bool fits = null || (known->shape == Shape::Mapping && value.is_mapping()) ||
                          (known->shape == Shape::Scalar && value.is_scalar()) ||
                          (known->shape == Shape::List && !value.is_mapping());
        if (fits) return {};
        return finding(
            "compose.schema", name, value.mark,
            fmt::format("{} must be {}, not {}", key, known->shape == Shape::Mapping ? "a mapping" : "something else",
                        yaml::name_of_type(value)));
    }

    Checked<void> includes(Node& tree, const std::filesystem::path& path) {
        const Node* include = tree.own("include");
        if (include == nullptr) return {};
        if (including_.contains(path.string()) || including_.size() > kMaxFiles)
            return finding("compose.include", path.string(), include->mark, "the file includes itself");
        including_.insert(path.string());
        for (const NodePtr& item : include->items) {
            std::vector<std::string> paths;
            const Node* given = item->is_scalar() ? item.get() : item->own("path");
            if (given == nullptr) return finding("compose.include", path.string(), item->mark, "include has no path");
            if (given->is_scalar()) paths.push_back(given->value);
            for (const NodePtr& one : given->items) paths.push_back(one->value);
            for (const std::string& one : paths) {
                const std::filesystem::path other = (path.parent_path() / one).lexically_normal();
                Loader inner(variables_, findings_);
                inner.including_ = including_;
                auto included = inner.root(other);
                if (!included && included.error().code == "compose.read")
                    return finding("compose.include", path.string(), item->mark,
                                   "cannot include: " + included.error().message);
                if (!included) return std::unexpected(included.error());
                add_missing(tree, **included);
            }
        }
        return {};
    }

    // What a file says itself wins over what it includes.
    static void add_missing(Node& tree, const Node& from) {
        for (const Entry& entry : from.entries) {
            if (!entry.value->is_mapping() || entry.key->value.starts_with("x-")) continue;
            NodePtr& place = entry_of(tree, entry.key->value, entry.key->mark);
            for (const Entry& inner : entry.value->entries)
                if (place->own(inner.key->value) == nullptr) place->entries.push_back(inner);
        }
    }

    Checked<NodePtr> service(const std::filesystem::path& path, const std::string& name,
                             std::vector<std::string>& chain) {
        const std::string id = path.string() + "\n" + name;
        TRY_ASSIGN(const NodePtr tree, file(path));
        const Node* services = tree->own("services");
        const Node* node = services == nullptr ? nullptr : services->own(name);
        if (node == nullptr)
            return finding("compose.extends", path.string(), {}, fmt::format("there is no service \"{}\"", name));
        if (std::find(chain.begin(), chain.end(), id) != chain.end() || chain.size() > kMaxFiles)
            return finding("compose.extends", path.string(), node->mark,
                           fmt::format("service \"{}\" extends itself", name));
        const Node* extends = node->own("extends");
        if (extends == nullptr) return std::make_shared<Node>(*node);
        chain.push_back(id);
        const Node* from = extends->is_scalar() ? extends : extends->own("service");
        const Node* from_file = extends->own("file");
        if (from == nullptr || !from->is_scalar() || from->value.empty())
            return finding("compose.extends", path.string(), extends->mark,
                           fmt::format("services.{}.extends names no service", name));
        std::filesystem::path other = path;
        if (from_file != nullptr) other = (path.parent_path() / from_file->value).lexically_normal();
        auto base = service(other, from->value, chain);
        if (!base && base.error().code == "compose.read")
            return finding(
                "compose.extends", path.string(), extends->mark,
                fmt::format("service \"{}\" extends a file that cannot be read: {}", name, base.error().message));
        if (!base) {
            if (base.error().mark.line == 0) base.error().mark = extends->mark, base.error().file = path.string();
            return base;
        }
        NodePtr merged = std::make_shared<Node>(**base);
        Node over = *node;
        std::erase_if(over.entries, [](const Entry& e) { return e.key->value == "extends"; });
        std::erase_if(merged->entries, [](const Entry& e) { return e.key->value == "profiles"; });
        merge_service(*merged, over);
        merged->mark = node->mark;
        return merged;
    }

    const Variables& variables_;
    const Findings& findings_;
    std::map<std::string, NodePtr> files_, resolved_;
    std::set<std::string> including_;
};

}  // namespace

Checked<NodePtr> load_tree(const std::filesystem::path& file, const Variables& variables, const Findings& findings) {
    return Loader(variables, findings).root(std::filesystem::absolute(file).lexically_normal());
}

}  // namespace talpa::topo
