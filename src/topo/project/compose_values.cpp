#include "topo/project/compose_values.h"

#include <algorithm>
#include <charconv>

#include "topo/project/compose_forms.h"
#include "topo/system/text.h"

namespace talpa::topo {
namespace {

using yaml::Entry;
using yaml::Node;
using yaml::NodePtr;

std::optional<int> number(std::string_view text) {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

struct Range {
    int low = 0, high = 0;
};

std::optional<Range> port_range(std::string_view text) {
    const std::size_t dash = text.find('-');
    const auto low = number(text.substr(0, dash));
    const auto high = dash == std::string_view::npos ? low : number(text.substr(dash + 1));
    if (!low || !high || *low < 1 || *high > 65535 || *low > *high) return std::nullopt;
    return Range{*low, *high};
}

Checked<std::vector<Port>> spread(const Node& node, const Place& place, const std::string& ip, std::string_view host,
                                  std::string_view target, const std::string& protocol) {
    const auto inside = port_range(target);
    if (!inside) return place.bad(node, fmt::format("\"{}\" is no container port", target));
    std::optional<Range> outside;
    if (!host.empty() && host != "0") {
        outside = port_range(host);
        if (!outside) return place.bad(node, fmt::format("\"{}\" is no host port (1 to 65535)", host));
    }
    const int count = inside->high - inside->low + 1;
    // "8000-9000:80": the engine may choose one of them; topo takes the first.
    if (outside && count > 1 && outside->high - outside->low + 1 != count)
        return place.bad(node, fmt::format("the port ranges {} and {} differ in length", host, target));
    if (protocol != "tcp" && protocol != "udp" && protocol != "sctp")
        return place.bad(node, fmt::format("\"{}\" is no protocol (tcp, udp, sctp)", protocol));
    if (count > 1000) return place.bad(node, "more than 1000 ports");
    std::vector<Port> ports;
    for (int i = 0; i < count; ++i)
        ports.push_back({.host_ip = ip,
                         .published = static_cast<std::uint16_t>(outside ? outside->low + i : 0),
                         .target = static_cast<std::uint16_t>(inside->low + i),
                         .protocol = protocol,
                         .mark = node.mark});
    return ports;
}

std::string text_of(const Node& mapping, const char* key) {
    const Node* node = mapping.own(key);
    return node == nullptr || is_null(*node) ? std::string() : node->value;
}

}  // namespace

std::unexpected<Finding> Place::bad(const Node& node, std::string message) const {
    return finding("compose.schema", file, node.mark, path + ": " + std::move(message));
}

Checked<bool> read_bool(const Node& node, const Place& place) {
    const std::string word = lower(node.value);
    if (node.is_scalar() && (word == "true" || word == "yes" || word == "on")) return true;
    if (node.is_scalar() && (word == "false" || word == "no" || word == "off" || word.empty())) return false;
    return place.bad(node, "must be true or false");
}

Checked<int> read_int(const Node& node, const Place& place, int low, int high) {
    const auto value = number(node.value);
    if (!node.is_scalar() || !value || *value < low || *value > high)
        return place.bad(node, fmt::format("must be a number from {} to {}", low, high));
    return *value;
}

Checked<std::chrono::milliseconds> read_duration(const Node& node, const Place& place) {
    auto value = parse_duration(node.value);
    if (!value) value = parse_duration(node.value + "s");
    if (!node.is_scalar() || !value) return place.bad(node, "must be a duration such as 5s or 1m30s");
    return *value;
}

Checked<std::vector<std::string>> read_texts(const Node& node, const Place& place) {
    std::vector<std::string> texts;
    if (is_null(node)) return texts;
    if (node.is_scalar()) return std::vector<std::string>{node.value};
    if (!node.is_sequence()) return place.bad(node, "must be a list of texts");
    for (const NodePtr& item : node.items) {
        if (!item->is_scalar()) return place.bad(*item, "must be a list of texts");
        texts.push_back(item->value);
    }
    return texts;
}

Checked<Pairs> read_pairs(const Node& node, const Place& place, const Variables* variables) {
    Pairs pairs;
    for (const Entry& entry : node.entries) {
        const Node& value = *entry.value;
        if (!value.is_scalar()) return place.below(entry.key->value).bad(value, "must be one value");
        if (!is_null(value)) {
            pairs.emplace_back(entry.key->value, value.value);
        } else if (variables == nullptr) {
            pairs.emplace_back(entry.key->value, "");
        } else if (auto from = variables->find(entry.key->value)) {
            pairs.emplace_back(entry.key->value, std::move(*from));
        }
    }
    return pairs;
}

Checked<std::vector<std::string>> read_command(const Node& node, const Place& place) {
    if (!node.is_scalar() || is_null(node)) return read_texts(node, place);
    auto words = shell_words(node.value);
    if (!words) return place.bad(node, "a quote is not closed");
    return std::move(*words);
}

Checked<std::vector<Port>> read_port(const Node& node, const Place& place) {
    if (node.is_mapping())
        return spread(node, place, text_of(node, "host_ip"), text_of(node, "published"), text_of(node, "target"),
                      node.own("protocol") != nullptr ? text_of(node, "protocol") : "tcp");
    if (!node.is_scalar()) return place.bad(node, "must be a text or a mapping");
    std::string_view text = node.value;
    std::string protocol = "tcp";
    if (const std::size_t slash = text.rfind('/'); slash != std::string_view::npos) {
        protocol = lower(text.substr(slash + 1));
        text = text.substr(0, slash);
    }
    std::string ip;
    if (text.starts_with('[')) {
        const std::size_t close = text.find("]:");
        if (close == std::string_view::npos) return place.bad(node, fmt::format("\"{}\" is no port", node.value));
        ip = text.substr(1, close - 1);
        text = text.substr(close + 2);
    } else if (std::count(text.begin(), text.end(), ':') > 1) {
        const std::size_t colon = text.rfind(':', text.rfind(':') - 1);
        ip = text.substr(0, colon);
        text = text.substr(colon + 1);
    }
    const std::size_t colon = text.find(':');
    const std::string_view host = colon == std::string_view::npos ? std::string_view() : text.substr(0, colon);
    return spread(node, place, ip, host, colon == std::string_view::npos ? text : text.substr(colon + 1), protocol);
}

Checked<Mount> read_mount(const Node& node, const Place& place) {
    Mount mount;
    mount.mark = node.mark;
    if (node.is_mapping()) {
        const std::string type = text_of(node, "type");
        mount.source = text_of(node, "source");
        mount.target = text_of(node, "target");
        if (type == "bind")
            mount.type = Mount::Type::Bind;
        else if (type == "tmpfs")
            mount.type = Mount::Type::Tmpfs;
        else if (type != "volume" && !type.empty())
            return place.bad(node, fmt::format("mount type \"{}\" (bind, volume and tmpfs are known)", type));
        if (const Node* read_only = node.own("read_only")) {
            TRY_ASSIGN(const bool only, read_bool(*read_only, place));
            if (only) mount.options = "ro";
        }
    } else {
        if (!node.is_scalar()) return place.bad(node, "must be a text or a mapping");
        std::vector<std::string> parts = split(node.value, ":");
        if (parts.size() > 3) return place.bad(node, fmt::format("\"{}\" has too many colons", node.value));
        if (parts.size() > 1 && parts[0].empty())
            return place.bad(node, fmt::format("\"{}\" has no source", node.value));
        if (parts.size() == 1) parts.insert(parts.begin(), "");
        if (parts.size() == 3 && !are_mount_options(parts[2]))
            return place.bad(node, fmt::format("\"{}\" are no options of a mount (ro, rw, z, …)", parts[2]));
        mount.source = parts[0];
        mount.target = parts[1];
        if (parts.size() == 3) mount.options = parts[2];
        const bool path =
            mount.source.starts_with('/') || mount.source.starts_with('.') || mount.source.starts_with('~');
        mount.type = path ? Mount::Type::Bind : Mount::Type::Volume;
    }
    if (mount.target.empty() || !mount.target.starts_with('/'))
        return place.bad(node, fmt::format("\"{}\" is no absolute path in the container", mount.target));
    if (mount.type == Mount::Type::Bind && mount.source.empty()) return place.bad(node, "a bind mount needs a source");
    return mount;
}

Checked<std::string> read_device(const Node& node, const Place& place) {
    if (node.is_scalar() && !node.value.empty()) {
        const std::vector<std::string> parts = split(node.value, ":");
        const bool cdi = node.value.find('=') != std::string::npos;  // "vendor.com/class=name"
        const bool paths = parts[0].starts_with('/') && (parts.size() < 2 || parts[1].starts_with('/') ||
                                                         (parts.size() == 2 && are_device_permissions(parts[1])));
        if (parts.size() > 3 || (!cdi && !paths))
            return place.bad(node, fmt::format("\"{}\" is not \"/dev/NAME\" or \"HOST:CONTAINER[:rwm]\"", node.value));
        if (parts.size() == 3 && !are_device_permissions(parts[2]))
            return place.bad(node, fmt::format("\"{}\" are no permissions (r, w, m)", parts[2]));
        return node.value;
    }
    const std::string source = text_of(node, "source"), target = text_of(node, "target");
    if (source.empty()) return place.bad(node, "must be \"/dev/NAME\" or \"HOST:CONTAINER[:rwm]\"");
    std::string text = source + ":" + (target.empty() ? source : target);
    if (const std::string permissions = text_of(node, "permissions"); !permissions.empty()) text += ":" + permissions;
    return text;
}

// With its unit: engines and Compose refuse one without.
static Checked<std::chrono::milliseconds> read_exact_duration(const Node& node, const Place& place) {
    const auto value = parse_duration(node.value);
    if (!node.is_scalar() || !value)
        return place.bad(node, fmt::format("\"{}\" is no duration such as 5s or 1m30s", node.value));
    return *value;
}

Checked<Healthcheck> read_healthcheck(const Node& node, const Place& place) {
    Healthcheck check;
    for (const Entry& entry : node.entries) {
        const std::string& key = entry.key->value;
        const Place here = place.below(key);
        if (key == "disable") {
            TRY_ASSIGN(check.disabled, read_bool(*entry.value, here));
        } else if (key == "test") {
            if (entry.value->is_scalar()) {
                check.test = {"CMD-SHELL", entry.value->value};
            } else {
                TRY_ASSIGN(check.test, read_texts(*entry.value, here));
            }
            const bool known = !check.test.empty() &&
                               (check.test[0] == "NONE" || check.test[0] == "CMD" || check.test[0] == "CMD-SHELL");
            if (!known) return here.bad(*entry.value, "must start with NONE, CMD or CMD-SHELL");
            if (check.test[0] == "NONE") check.disabled = true;
        } else if (key == "interval") {
            TRY_ASSIGN(check.interval, read_exact_duration(*entry.value, here));
        } else if (key == "timeout") {
            TRY_ASSIGN(check.timeout, read_exact_duration(*entry.value, here));
        } else if (key == "start_period") {
            TRY_ASSIGN(check.start_period, read_exact_duration(*entry.value, here));
        } else if (key == "retries") {
            TRY_ASSIGN(check.retries, read_int(*entry.value, here, 0, 100'000));
        } else if (key == "start_interval") {
            TRY(read_exact_duration(*entry.value, here));
        } else if (!key.starts_with("x-")) {
            return here.bad(*entry.key, "is no field of a health check");
        }
    }
    return check;
}

Checked<std::vector<Dependency>> read_depends_on(const Node& node, const Place& place) {
    std::vector<Dependency> all;
    for (const Entry& entry : node.entries) {
        Dependency dependency;
        dependency.service = entry.key->value;
        dependency.mark = entry.key->mark;
        const std::string condition = text_of(*entry.value, "condition");
        if (condition == "service_healthy")
            dependency.condition = Dependency::Condition::Healthy;
        else if (condition == "service_completed_successfully")
            dependency.condition = Dependency::Condition::Completed;
        else if (!condition.empty() && condition != "service_started")
            return place.below(dependency.service)
                .bad(*entry.value, fmt::format("condition \"{}\" is not known", condition));
        if (const Node* required = entry.value->own("required")) {
            TRY_ASSIGN(dependency.required, read_bool(*required, place.below(dependency.service)));
        }
        all.push_back(std::move(dependency));
    }
    return all;
}

}  // namespace talpa::topo
