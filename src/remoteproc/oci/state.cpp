#include "remoteproc/oci/state.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "base/host/json.h"
#include "remoteproc/oci/wishes.h"

namespace talpa::remoteproc {
namespace {

using host::Json;

std::string dumped(const Json& json, int indent) {
    return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

// Every read of a stranger's file: exceptions of the library end here.
template <typename F>
auto guarded(std::string_view text, F&& read) -> Result<std::invoke_result_t<F, const Json&>> {
    TRY_ASSIGN(const std::string_view object, first_json_object(text));
    try {
        return read(Json::parse(object));
    } catch (const std::exception& e) {
        return host::failure(ErrorCode::InvalidProgram, "invalid JSON: {}", printable(e.what()));
    }
}

Json to_json(const Annotations& annotations) {
    Json out = Json::object();
    for (const auto& [key, value] : annotations) out[key] = value;
    return out;
}

Annotations annotations_of(const Json& json, const char* key) {
    Annotations out;
    if (const auto found = json.find(key); found != json.end() && found->is_object())
        for (const auto& [name, value] : found->items())
            if (value.is_string()) out[name] = value.get<std::string>();
    return out;
}

template <typename T>
T value_or(const Json& json, const char* key, T otherwise) {
    const auto found = json.find(key);
    return found == json.end() || found->is_null() ? otherwise : found->get<T>();
}

}  // namespace

std::string StateFile::annotation(std::string_view key) const {
    const auto found = annotations.find(std::string(key));
    return found == annotations.end() ? "" : found->second;
}

std::string state_json(const StateFile& state, int indent) {
    Json json;
    json["ociVersion"] = kOciVersion;
    json["id"] = state.id;
    json["status"] = state.status;
    if (state.pid > 0) json["pid"] = state.pid;
    json["bundle"] = state.bundle;
    if (!state.annotations.empty()) json["annotations"] = to_json(state.annotations);
    return dumped(json, indent);
}

Result<StateFile> parse_state_file(std::string_view text) {
    TRY_ASSIGN(StateFile state, guarded(text, [](const Json& json) {
                   StateFile s;
                   s.id = value_or<std::string>(json, "id", "");
                   s.status = value_or<std::string>(json, "status", "");
                   const auto pid = value_or<std::int64_t>(json, "pid", 0);
                   s.pid = pid > 0 && pid <= INT32_MAX ? static_cast<pid_t>(pid) : 0;
                   s.bundle = value_or<std::string>(json, "bundle", "");
                   s.annotations = annotations_of(json, "annotations");
                   return s;
               }));
    return state;
}

std::string details_json(const Details& d) {
    Json json;
    json["version"] = 1;
    json["startTime"] = d.start_time;
    json["boot"] = d.boot;
    json["pid"] = d.pid;
    json["device"] = d.device;
    json["firmwarePath"] = d.firmware_path;
    json["bundle"] = d.bundle;
    if (d.namespace_name) json["namespace"] = *d.namespace_name;
    json["root"] = d.root_folder;
    json["argument"] = d.argument;
    json["firmware"] = {d.firmware.device, d.firmware.inode, d.firmware.size, d.firmware.mtime_ns};
    json["sandbox"] = d.kind == ContainerKind::Sandbox;
    json["deleting"] = d.deleting;
    json["recoveryBefore"] = d.recovery_before;
    json["created"] = d.created_ns;
    json["annotations"] = to_json(d.annotations);
    Json hooks = Json::object();
    for (std::size_t kind = 0; kind < kHookKeys.size(); ++kind)
        for (const Hook& hook : d.hooks[kind])
            hooks[std::string(kHookKeys[kind])].push_back({{"path", hook.path},
                                                           {"args", hook.arguments},
                                                           {"env", hook.environment},
                                                           {"timeout", hook.timeout_s}});
    json["hooks"] = hooks;
    return dumped(json, 2);
}

Result<Details> parse_details(std::string_view text) {
    return guarded(text, [](const Json& json) {
        Details d;
        d.start_time = value_or<std::uint64_t>(json, "startTime", 0);
        d.boot = value_or<std::string>(json, "boot", "");
        const auto pid = value_or<std::int64_t>(json, "pid", 0);
        d.pid = pid > 0 && pid <= INT32_MAX ? static_cast<pid_t>(pid) : 0;
        d.device = value_or<std::string>(json, "device", "");
        d.firmware_path = value_or<std::string>(json, "firmwarePath", "");
        d.bundle = value_or<std::string>(json, "bundle", "");
        if (json.contains("namespace")) d.namespace_name = value_or<std::string>(json, "namespace", "");
        d.root_folder = value_or<std::string>(json, "root", "");
        d.argument = value_or<std::string>(json, "argument", "");
        if (const auto found = json.find("firmware"); found != json.end() && found->is_array() && found->size() == 4)
            d.firmware = {found->at(0).get<std::uint64_t>(), found->at(1).get<std::uint64_t>(),
                          found->at(2).get<std::uint64_t>(), found->at(3).get<std::uint64_t>()};
        d.kind = value_or(json, "sandbox", false) ? ContainerKind::Sandbox : ContainerKind::Firmware;
        d.deleting = value_or(json, "deleting", false);
        d.recovery_before = value_or<std::string>(json, "recoveryBefore", "");
        d.created_ns = value_or<std::uint64_t>(json, "created", 0);
        d.annotations = annotations_of(json, "annotations");
        const auto hooks = json.find("hooks");
        for (std::size_t kind = 0; hooks != json.end() && hooks->is_object() && kind < kHookKeys.size(); ++kind) {
            const auto list = hooks->find(std::string(kHookKeys[kind]));
            if (list == hooks->end() || !list->is_array()) continue;
            for (const Json& item : *list)
                d.hooks[kind].push_back(
                    {item.at("path").get<std::string>(), item.at("args").get<std::vector<std::string>>(),
                     item.at("env").get<std::vector<std::string>>(), item.at("timeout").get<int>()});
        }
        return d;
    });
}

ProxyRecord parse_proxy_record(std::string_view text) {
    ProxyRecord record;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        if (end == std::string_view::npos) break;  // a line that is still being written
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(end + 1);
        std::uint64_t when = 0;
        const auto [after, error] = std::from_chars(line.data(), line.data() + line.size(), when);
        if (error != std::errc{} || after == line.data() + line.size() || *after != ' ') continue;
        std::string_view rest(after + 1, line.data() + line.size());
        const std::size_t space = rest.find(' ');
        const std::string_view word = rest.substr(0, space);
        rest = space == std::string_view::npos ? std::string_view() : rest.substr(space + 1);
        record.last_ns = when;
        int number = 0;
        const auto [number_end, number_error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
        const bool numbered = number_error == std::errc{};
        std::string_view tail(numbered ? number_end : rest.data(), rest.data() + rest.size());
        if (tail.starts_with(' ')) tail.remove_prefix(1);
        if (word == "started") {
            record.started = true;
            record.started_ns = when;
        } else if (word == "failed" && numbered) {
            record.failed_errno = number;
            record.failed_text = tail;
        } else if (word == "exit" && numbered && !record.exit_code) {
            record.exit_code = number;
            record.exit_reason = tail;
            record.exit_ns = when;
        }
    }
    return record;
}

Result<void> check_id(std::string_view id) {
    const auto plain = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 && c > 0; };
    const bool good = !id.empty() && id.size() <= 255 && plain(id.front()) && std::ranges::all_of(id, [&](char c) {
        return plain(c) || c == '_' || c == '.' || c == '-' || c == '+';
    });
    if (good) return {};
    return host::failure(
        ErrorCode::InvalidArgument,
        "invalid container id \"{}\": 1 to 255 letters, digits and _ . - + are allowed, a letter or digit "
        "first",
        printable(id));
}

}  // namespace talpa::remoteproc
