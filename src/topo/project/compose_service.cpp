#include "topo/project/compose_service.h"

#include <algorithm>
#include <set>

#include "base/host/file.h"
#include "base/host/sha256.h"
#include "topo/project/compose_forms.h"
#include "topo/project/compose_keys.h"
#include "topo/project/compose_values.h"
#include "topo/system/text.h"

namespace talpa::topo {
namespace {

using yaml::Entry;
using yaml::Node;
using yaml::NodePtr;

// The resolved service as one text, whatever the order of its keys, so that a change of meaning changes the hash.
void canonical(const Node& node, std::string& out) {
    if (node.is_scalar()) {
        out += fmt::format("{}:{}", node.value.size(), node.value);
    } else if (node.is_sequence()) {
        out += '[';
        for (const NodePtr& item : node.items) canonical(*item, out);
        out += ']';
    } else {
        std::vector<const Entry*> entries;
        for (const Entry& entry : node.entries) entries.push_back(&entry);
        std::sort(entries.begin(), entries.end(),
                  [](const Entry* a, const Entry* b) { return a->key->value < b->key->value; });
        out += '{';
        for (const Entry* entry : entries) {
            out += fmt::format("{}:{}=", entry->key->value.size(), entry->key->value);
            canonical(*entry->value, out);
        }
        out += '}';
    }
}

// Letters, digits, '_' and, not first unless it is one of `first`, '.' and '-'.
bool is_name(std::string_view text, std::string_view first) {
    const auto letter = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    };
    if (text.empty() || !(letter(text[0]) || text[0] == '_' || first.find(text[0]) != std::string_view::npos))
        return false;
    return std::all_of(text.begin(), text.end(), [&](char c) { return letter(c) || c == '_' || c == '.' || c == '-'; });
}

class ServiceReader {
  public:
    explicit ServiceReader(const ServiceContext& context)
        : file_(context.file), variables_(context.variables), findings_(context.findings), project_(context.project) {}

    Checked<Service> service(const std::string& name, const Node& node) {
        Service s;
        s.name = name;
        s.mark = node.mark;
        // Compose's own rules, and the engines': else the first to notice is a build, or the start behind all the rest.
        if (!is_name(name, ".-"))
            TRY(findings_.take(
                finding("compose.schema", file_, node.mark,
                        fmt::format("service \"{}\": a name has letters, digits, '.', '_' and '-' only", name))));
        const bool sound = findings_.count() == 0;
        for (const Entry& entry : node.entries) {
            const ComposeKey* key = find_key(service_keys(), entry.key->value);
            if (key == nullptr || is_null(*entry.value)) continue;
            const Place place{file_, fmt::format("services.{}.{}", name, key->name)};
            TRY(findings_.take(value_of(s, *key, *entry.value, place)));
        }
        // Whose network another uses is started first.
        if (const std::string_view mode = s.network_mode; mode.starts_with("service:")) {
            const std::string other(mode.substr(8));
            if (std::none_of(s.depends_on.begin(), s.depends_on.end(),
                             [&](const Dependency& d) { return d.service == other; }))
                s.depends_on.push_back({.service = other, .required = false, .mark = node.mark});
        }
        // Where all findings are wanted, what says it may have been left out for another reason.
        if (s.image.empty() && !s.build && sound)
            return finding("compose.schema", file_, node.mark,
                           fmt::format("service \"{}\" has neither an image nor a build context specified: invalid "
                                       "compose project",
                                       name),
                           "give it `image: NAME` or `build: FOLDER`");
        // As with Compose, what makes the image or the order is no part of it: the image has an ID, and another folder
        // with the same project is the same project.
        Node hashed = node;
        std::erase_if(hashed.entries, [](const Entry& entry) {
            for (const std::string_view key : {"build", "depends_on", "profiles", "pull_policy", "scale", "extends"})
                if (entry.key->value == key) return true;
            return false;
        });
        std::string text;
        canonical(hashed, text);
        s.config_hash = host::sha256_hex(text);
        return s;
    }

  private:
    Checked<void> value_of(Service& s, const ComposeKey& key, const Node& node, const Place& place) {
        TRY(form(key.name, node, place));
        switch (key.handling) {
            case Handling::Own:
                return own(s, key.name, node, place);
            case Handling::Flag: {
                TRY_ASSIGN(const auto values, read_texts(node, place));
                for (const std::string& value : values) s.run_flags.emplace_back(key.flag, value);
                break;
            }
            case Handling::Switch: {
                TRY_ASSIGN(const bool on, read_bool(node, place));
                if (on) s.run_flags.emplace_back(key.flag, "");
                if (key.name == "privileged") s.privileged = on;
                break;
            }
            case Handling::Refused:
                refuse(place.path, node);
                break;
            case Handling::Ignored:
                break;
        }
        return {};
    }

    // What an engine would refuse, and late (table in compose_forms.cpp).
    Checked<void> form(std::string_view key, const Node& node, const Place& place) const {
        const auto one = [&](const Node& value) -> Checked<void> {
            if (!value.is_scalar()) return {};
            // `runtime: ${RUNTIME:-}`: not given, as with Compose.
            if (value.value.empty() && (key == "runtime" || key == "network_mode" || key == "pull_policy")) return {};
            const auto should = wrong_form(key, value.value);
            if (!should) return {};
            return place.bad(value, fmt::format("\"{}\" is not {}", value.value, *should));
        };
        TRY(findings_.take(one(node)));
        for (const NodePtr& item : node.items) TRY(findings_.take(one(*item)));
        return {};
    }

    void refuse(std::string path, const Node& node) { project_.not_honoured.push_back({std::move(path), node.mark}); }

    Checked<void> own(Service& s, std::string_view key, const Node& node, const Place& place) {
        if (key == "image")
            s.image = node.value;
        else if (key == "platform")
            s.platform = node.value;
        else if (key == "runtime")
            s.runtime = node.value;
        else if (key == "container_name") {
            s.container_name = node.value;
            if (!is_name(node.value, ""))
                return finding(
                    "compose.schema", file_, node.mark,
                    fmt::format(
                        "{} is no name of a container: letters, digits, '.', '_' and '-', the first a letter or digit",
                        place.path));
        } else if (key == "network_mode")
            s.network_mode = node.value;
        else if (key == "pull_policy")
            s.pull_policy = node.value;
        else if (key == "restart")
            return restart(s, node, place);
        else if (key == "build")
            return build(s, node, place);
        else if (key == "ports")
            return ports(s, node, place);
        else if (key == "volumes")
            return volumes(s, node, place);
        else if (key == "env_file")
            return env_file(s, node, place);
        else if (key == "environment")
            return environment_of(s, node, place);
        else if (key == "deploy")
            return deploy(s, node, place);
        else if (key == "logging")
            return logging(s, node, place);
        else if (key == "ulimits")
            return ulimits(s, node, place);
        else if (key == "networks")
            return networks(s, node, place);
        else
            return own_lists(s, key, node, place);
        return {};
    }

    Checked<void> own_lists(Service& s, std::string_view key, const Node& node, const Place& place) {
        if (key == "scale") {
            TRY_ASSIGN(s.scale, read_int(node, place, 0, 1000));
        } else if (key == "profiles") {
            TRY_ASSIGN(s.profiles, read_texts(node, place));
        } else if (key == "command") {
            TRY_ASSIGN(s.command, read_command(node, place));
        } else if (key == "entrypoint") {
            TRY_ASSIGN(s.entrypoint, read_command(node, place));
        } else if (key == "labels") {
            TRY_ASSIGN(s.labels, read_pairs(node, place, nullptr));
        } else if (key == "annotations") {
            TRY_ASSIGN(s.annotations, read_pairs(node, place, nullptr));
        } else if (key == "extra_hosts") {
            TRY_ASSIGN(s.extra_hosts, read_pairs(node, place, nullptr));
            for (const Entry& entry : node.entries)
                if (!is_host_address(entry.value->value))
                    TRY(findings_.take(place.bad(
                        *entry.value, fmt::format("\"{}\" is no address of {} (write NAME=ADDRESS, in numbers)",
                                                  entry.value->value, entry.key->value))));
        } else if (key == "sysctls") {
            TRY_ASSIGN(s.sysctls, read_pairs(node, place, nullptr));
        } else if (key == "depends_on") {
            TRY_ASSIGN(s.depends_on, read_depends_on(node, place));
        } else if (key == "healthcheck") {
            TRY_ASSIGN(s.healthcheck, read_healthcheck(node, place));
        } else if (key == "stop_grace_period") {
            TRY_ASSIGN(s.stop_grace_period, read_duration(node, place));
        } else if (key == "devices") {
            for (const NodePtr& item : node.items) {
                auto device = read_device(*item, place);
                if (device)
                    s.devices.push_back(std::move(*device));
                else
                    TRY(findings_.take(std::unexpected(std::move(device.error()))));
            }
        }
        return {};
    }

    static Checked<void> restart(Service& s, const Node& node, const Place& place) {
        const std::string policy = node.value.substr(0, node.value.find(':'));
        if (policy != "no" && policy != "always" && policy != "on-failure" && policy != "unless-stopped" &&
            policy != "false")
            return place.bad(
                node,
                fmt::format("\"{}\" is no restart policy (no, always, on-failure[:N], unless-stopped)", node.value));
        const std::size_t colon = node.value.find(':');
        if (colon != std::string::npos &&
            (policy != "on-failure" || !is_count(std::string_view(node.value).substr(colon + 1), false)))
            return place.bad(node, fmt::format("\"{}\": only on-failure has a number behind it", node.value));
        s.restart = policy == "false" ? "no" : node.value;
        return {};
    }

    Checked<void> build(Service& s, const Node& node, const Place& place) {
        Build b;
        b.mark = node.mark;
        b.context = project_.folder.string();
        for (const Entry& entry : node.entries) {
            const ComposeKey* key = find_key(build_keys(), entry.key->value);
            if (key == nullptr || is_null(*entry.value)) continue;
            const Place here = place.below(key->name);
            const Node& value = *entry.value;
            if (key->handling == Handling::Refused) refuse(here.path, value);
            if (key->name == "context") b.context = value.value;
            if (key->name == "dockerfile") b.dockerfile = value.value;
            if (key->name == "dockerfile_inline") b.dockerfile_inline = value.value;
            if (key->name == "target") b.target = value.value;
            if (key->name == "network") b.network = value.value;
            if (key->name == "no_cache") {
                TRY_ASSIGN(b.no_cache, read_bool(value, here));
            }
            if (key->name == "args") {
                TRY_ASSIGN(b.args, read_pairs(value, here, &variables_));
            }
            if (key->name == "additional_contexts") {
                TRY_ASSIGN(b.additional_contexts, read_pairs(value, here, nullptr));
            }
            if (key->name == "cache_from") {
                TRY_ASSIGN(b.cache_from, read_texts(value, here));
            }
            if (key->name == "tags") {
                TRY_ASSIGN(b.tags, read_texts(value, here));
                for (const NodePtr& item : value.items)
                    if (!is_image_reference(item->value))
                        TRY(findings_.take(here.bad(*item, fmt::format("\"{}\" is no image reference", item->value))));
            }
            if (key->name == "labels") {
                TRY_ASSIGN(b.labels, read_pairs(value, here, nullptr));
            }
            if (key->name == "extra_hosts") {
                TRY_ASSIGN(b.extra_hosts, read_pairs(value, here, nullptr));
            }
        }
        s.build = std::move(b);
        return {};
    }

    Checked<void> ports(Service& s, const Node& node, const Place& place) const {
        for (const NodePtr& item : node.items) {
            auto some = read_port(*item, place);
            if (some)
                s.ports.insert(s.ports.end(), some->begin(), some->end());
            else
                TRY(findings_.take(std::unexpected(std::move(some.error()))));
        }
        return {};
    }

    // Of two mounts at the same place the later one counts (an extending service over the one it extends).
    Checked<void> volumes(Service& s, const Node& node, const Place& place) const {
        for (const NodePtr& item : node.items) {
            auto mount = read_mount(*item, place);
            if (!mount) {
                TRY(findings_.take(std::unexpected(std::move(mount.error()))));
                continue;
            }
            std::erase_if(s.mounts, [&](const Mount& m) { return m.target == mount->target; });
            s.mounts.push_back(std::move(*mount));
        }
        return {};
    }

    static void set(Pairs& pairs, const std::string& name, const std::string& value) {
        for (auto& pair : pairs)
            if (pair.first == name) {
                pair.second = value;
                return;
            }
        pairs.emplace_back(name, value);
    }

    Checked<void> env_file(Service& s, const Node& node, const Place& place) {
        Pairs from_files;
        std::vector<const Node*> files;
        if (node.is_sequence())
            for (const NodePtr& item : node.items) files.push_back(item.get());
        else
            files.push_back(&node);
        for (const Node* item : files) {
            const Node* path = item->is_scalar() ? item : item->own("path");
            const Node* required = item->own("required");
            if (path == nullptr || !path->is_scalar()) return place.bad(*item, "must name a file");
            bool needed = true;
            if (required != nullptr) {
                TRY_ASSIGN(needed, read_bool(*required, place));
            }
            const auto text = host::read_text(path->value, 1 << 20);
            if (!text && !needed && text.error().code == ErrorCode::NotFound) continue;
            if (!text) return finding("compose.env-file", file_, path->mark, "env file: " + text.error().message);
            TRY_ASSIGN(const auto pairs, parse_env_file(*text, path->value, variables_));
            for (const auto& [name, value] : pairs) set(from_files, name, value);
        }
        // `environment` may have been read before; it wins.
        for (const auto& [name, value] : s.environment) set(from_files, name, value);
        s.environment = std::move(from_files);
        return {};
    }

    Checked<void> environment_of(Service& s, const Node& node, const Place& place) {
        TRY_ASSIGN(const Pairs own_pairs, read_pairs(node, place, &variables_));
        for (const auto& [name, value] : own_pairs) set(s.environment, name, value);
        return {};
    }

    Checked<void> deploy(Service& s, const Node& node, const Place& place) {
        for (const Entry& entry : node.entries) {
            const std::string& key = entry.key->value;
            if (key == "replicas") {
                TRY_ASSIGN(s.scale, read_int(*entry.value, place.below(key), 0, 1000));
            } else if (key == "resources") {
                refuse(place.below(key).path, *entry.value);
            }
        }
        return {};
    }

    static Checked<void> logging(Service& s, const Node& node, const Place& place) {
        if (const Node* driver = node.own("driver")) s.run_flags.emplace_back("--log-driver", driver->value);
        if (const Node* options = node.own("options")) {
            TRY_ASSIGN(const Pairs pairs, read_pairs(*options, place.below("options"), nullptr));
            for (const auto& [name, value] : pairs) s.run_flags.emplace_back("--log-opt", name + "=" + value);
        }
        return {};
    }

    static Checked<void> ulimits(Service& s, const Node& node, const Place& place) {
        for (const Entry& entry : node.entries) {
            const Node& value = *entry.value;
            const Node* soft = value.own("soft");
            const Node* hard = value.own("hard");
            if (!value.is_scalar() && (soft == nullptr || hard == nullptr))
                return place.below(entry.key->value).bad(value, "must be a number, or have soft and hard");
            for (const Node* number : {&value, soft, hard})
                if (number != nullptr && number->is_scalar() && !is_count(number->value, true))
                    return place.below(entry.key->value)
                        .bad(*number, fmt::format("\"{}\" is not a number, or -1", number->value));
            s.run_flags.emplace_back(
                "--ulimit", value.is_scalar() ? fmt::format("{0}={1}:{1}", entry.key->value, value.value)
                                              : fmt::format("{}={}:{}", entry.key->value, soft->value, hard->value));
        }
        return {};
    }

    Checked<void> networks(Service& s, const Node& node, const Place& place) {
        for (const Entry& entry : node.entries) {
            s.networks.push_back(entry.key->value);
            for (const Entry& option : entry.value->entries)
                if (option.key->value != "aliases" && option.key->value != "priority")
                    refuse(fmt::format("{}.{}.{}", place.path, entry.key->value, option.key->value), *option.key);
        }
        return {};
    }

    const std::string& file_;
    const Variables& variables_;
    const Findings& findings_;
    Project& project_;
};

}  // namespace

Checked<Service> read_service(const std::string& name, const Node& node, const ServiceContext& context) {
    return ServiceReader(context).service(name, node);
}

}  // namespace talpa::topo
