// What docker and podman print, taken apart. A target may print anything: wrong types become empty values, and what is
// not JSON at all is an error.
#include <algorithm>
#include <charconv>

#include "base/host/json.h"
#include "topo/engine/engine.h"
#include "topo/system/json_answer.h"
#include "topo/system/text.h"

namespace talpa::topo {
namespace {

using host::Json;

std::int64_t number(const Json& value) {
    if (value.is_number_integer()) return value.get<std::int64_t>();
    const std::string digits = text_of(value);
    std::int64_t n = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), n);
    return error == std::errc() && end == digits.data() + digits.size() ? n : 0;
}

std::string without_algorithm(std::string id) {
    return id.starts_with("sha256:") ? id.substr(7) : id;
}

std::string first_text(std::initializer_list<const Json*> values) {
    for (const Json* value : values)
        if (std::string t = text_of(*value); !t.empty()) return t;
    return {};
}

// {"3000/tcp": [{"HostIp": "", "HostPort": "3001"}], …} of NetworkSettings.Ports
std::vector<PublishedPort> ports_of(const Json& ports) {
    std::vector<PublishedPort> found;
    if (!ports.is_object()) return found;
    for (const auto& [key, bindings] : ports.items()) {
        if (!bindings.is_array()) continue;
        const std::size_t slash = key.find('/');
        for (const Json& binding : bindings) {
            PublishedPort port;
            port.host_ip = text_of(at(binding, "HostIp"));
            if (port.host_ip.empty()) port.host_ip = "0.0.0.0";
            port.host_port = static_cast<std::uint16_t>(number(at(binding, "HostPort")));
            port.container_port = static_cast<std::uint16_t>(number(Json(key.substr(0, slash))));
            port.protocol = slash == std::string::npos ? "tcp" : key.substr(slash + 1);
            if (port.host_port != 0) found.push_back(std::move(port));
        }
    }
    return found;
}

Container container(EngineKind kind, const Json& one) {
    Container c;
    const Json& labels = at(one, "Config", "Labels");
    c.id = text_of(at(one, "Id"));
    c.name = text_of(at(one, "Name"));
    if (c.name.starts_with('/')) c.name.erase(0, 1);
    c.image = kind == EngineKind::Docker
                  ? text_of(at(one, "Config", "Image"))
                  : short_image_name(first_text({&at(one, "ImageName"), &at(one, "Config", "Image")}));
    if (c.image.ends_with(":latest")) c.image.resize(c.image.size() - 7);
    c.image_id = without_algorithm(text_of(at(one, "Image")));
    c.state = lower(text_of(at(one, "State", "Status")));
    c.exit_code = static_cast<int>(number(at(one, "State", "ExitCode")));
    c.health = lower(first_text({&at(one, "State", "Health", "Status"), &at(one, "State", "Healthcheck", "Status")}));
    c.service = text_of(at(labels, kLabelService));
    c.hash = text_of(at(labels, kLabelHash));
    c.number = static_cast<int>(number(at(labels, kLabelNumber)));
    c.oneoff = lower(text_of(at(labels, kLabelOneoff))) == "true";
    c.working_folder = text_of(at(labels, kLabelFolder));
    c.config_files = text_of(at(labels, kLabelFiles));
    c.host_network = text_of(at(one, "HostConfig", "NetworkMode")) == "host";
    c.runtime = kind == EngineKind::Docker ? text_of(at(one, "HostConfig", "Runtime")) : text_of(at(one, "OCIRuntime"));
    // Engines before API 1.43 drop annotations; a label of the same name stands in for them.
    c.remote_processor =
        first_text({&at(one, "HostConfig", "Annotations", kRemoteprocAnnotation),
                    &at(one, "Config", "Annotations", kRemoteprocAnnotation), &at(labels, kRemoteprocAnnotation)});
    c.ports = ports_of(at(one, "NetworkSettings", "Ports"));
    if (c.ports.empty()) c.ports = ports_of(at(one, "HostConfig", "PortBindings"));
    for (const Json* test : {&at(one, "Config", "Healthcheck", "Test"), &at(one, "Config", "Healthcheck", "test")})
        if (test->is_array() && c.health_test.empty())
            for (const Json& word : *test) c.health_test.push_back(text_of(word));
    return c;
}

}  // namespace

host::Result<std::vector<Container>> parse_containers(EngineKind kind, const std::string& inspect_json,
                                                      const std::string& status_lines) {
    const Json document = Json::parse(inspect_json, nullptr, false);
    if (document.is_discarded() || !document.is_array())
        return host::failure(ErrorCode::InvalidArgument, "{} inspect answered something that is not its JSON",
                             name_of(kind));
    std::vector<Container> all;
    for (const Json& one : document) {
        Container c = container(kind, one);
        if (c.id.empty()) continue;
        for (const std::string& line : lines_of(status_lines))
            if (line.starts_with(c.id + "|")) c.status = line.substr(c.id.size() + 1);
        all.push_back(std::move(c));
    }
    std::sort(all.begin(), all.end(), [](const Container& a, const Container& b) { return a.name < b.name; });
    return all;
}

host::Result<std::vector<Image>> parse_images(const std::string& inspect_json) {
    const Json document = Json::parse(inspect_json, nullptr, false);
    if (document.is_discarded() || !document.is_array())
        return host::failure(ErrorCode::InvalidArgument, "image inspect answered something that is not its JSON");
    std::vector<Image> all;
    for (const Json& one : document) {
        Image image;
        image.id = without_algorithm(text_of(at(one, "Id")));
        if (image.id.empty()) continue;
        for (const Json& name : at(one, "RepoTags"))
            if (name.is_string()) image.names.push_back(name.get<std::string>());
        image.os = text_of(at(one, "Os"));
        image.architecture = platform_architecture(text_of(at(one, "Architecture")));
        image.variant = text_of(at(one, "Variant"));
        for (const Json& layer : at(one, "RootFS", "Layers"))
            if (layer.is_string()) image.layers.push_back(layer.get<std::string>());
        image.size_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(0, number(at(one, "Size"))));
        all.push_back(std::move(image));
    }
    return all;
}

host::Result<EngineInfo> parse_info(EngineKind kind, const std::string& info_json) {
    const Json document = Json::parse(info_json, nullptr, false);
    if (document.is_discarded() || !document.is_object())
        return host::failure(ErrorCode::InvalidArgument, "{} info answered something that is not its JSON",
                             name_of(kind));
    EngineInfo info;
    if (kind == EngineKind::Docker) {
        info.version = text_of(at(document, "ServerVersion"));
        info.os = text_of(at(document, "OSType"));
        info.architecture = platform_architecture(text_of(at(document, "Architecture")));
        info.root_folder = text_of(at(document, "DockerRootDir"));
        if (const Json& runtimes = at(document, "Runtimes"); runtimes.is_object())
            for (const auto& [name, unused] : runtimes.items()) info.runtimes.push_back(name);
    } else {
        info.version = text_of(at(document, "version", "Version"));
        info.os = text_of(at(document, "host", "os"));
        info.architecture = platform_architecture(text_of(at(document, "host", "arch")));
        info.root_folder = text_of(at(document, "store", "graphRoot"));
        info.remote_socket = text_of(at(document, "host", "remoteSocket", "path"));
    }
    return info;
}

}  // namespace talpa::topo
