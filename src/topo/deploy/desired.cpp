#include "topo/deploy/desired.h"

#include <algorithm>
#include <set>

#include "topo/deploy/words.h"
#include "topo/system/log.h"
#include "topo/system/next_command.h"
#include "topo/system/text.h"

namespace talpa::topo {
namespace {

constexpr int kFirstAnnotatingDocker = 24;  // API 1.43 (topo spec, section 15)

std::string in_seconds(Milliseconds time) {
    return fmt::format("{}ms", time.count());
}

void add_labels(Words& words, const Project& project, const Service& service, int number, const Image& image) {
    std::string depends;
    for (const Dependency& d : service.depends_on) {
        const char* condition = d.condition == Dependency::Condition::Healthy     ? "service_healthy"
                                : d.condition == Dependency::Condition::Completed ? "service_completed_successfully"
                                                                                  : "service_started";
        depends += fmt::format("{}{}:{}:false", depends.empty() ? "" : ",", d.service, condition);
    }
    const std::pair<const char*, std::string> kOurs[] = {
        {kLabelProject, project.name},
        {kLabelService, service.name},
        {kLabelNumber, std::to_string(number)},
        {kLabelOneoff, "False"},
        {kLabelHash, service.config_hash},
        {kLabelImage, "sha256:" + image.id},
        {kLabelFiles, project.file.string()},
        {kLabelFolder, project.folder.string()},
        {"com.docker.compose.depends_on", depends},
    };
    for (const auto& [name, value] : service.labels) add_option(words, "--label", name + "=" + value);
    for (const auto& [name, value] : kOurs) add_option(words, "--label", fmt::format("{}={}", name, value));
}

std::string json_list(const Words& words) {
    std::string list;
    for (const std::string& word : words) list += (list.empty() ? "[" : ",") + json_text(word);
    return list + "]";
}

// The engine keeps a check only in the words of a shell or (Podman) as a list.
void add_healthcheck(Words& words, const Healthcheck& check, EngineKind kind) {
    if (check.disabled) return words.emplace_back("--no-healthcheck"), void();
    if (check.test.size() > 1) {
        if (check.test[0] == "CMD-SHELL") {
            add_option(words, "--health-cmd", check.test[1]);
        } else {
            const Words command(check.test.begin() + 1, check.test.end());
            const bool blanks = std::any_of(command.begin(), command.end(), [](const std::string& word) {
                return word.empty() || word.find_first_of(" \t\n") != std::string::npos;
            });
            if (kind == EngineKind::Docker)
                add_option(words, "--health-cmd", shell_quoted(command));
            else
                // Podman 4.3 splits "CMD a b" at blanks, and takes a JSON list only without the CMD.
                add_option(words, "--health-cmd", blanks ? json_list(command) : "CMD " + joined(command, " "));
        }
    }
    add_option(words, "--health-interval", in_seconds(check.interval));
    add_option(words, "--health-timeout", in_seconds(check.timeout));
    add_option(words, "--health-start-period", in_seconds(check.start_period));
    add_option(words, "--health-retries", std::to_string(std::max(check.retries, 1)));
}

void add_mounts(Words& words, const Project& project, const Service& service) {
    for (const Mount& mount : service.mounts) {
        if (mount.type == Mount::Type::Tmpfs) {
            add_option(words, "--tmpfs", mount.target);
            continue;
        }
        std::string source = mount.source;
        if (mount.type == Mount::Type::Volume)
            for (const NamedVolume& volume : project.volumes)
                if (volume.key == mount.source) source = volume.name;
        std::string text = source.empty() ? mount.target : source + ":" + mount.target;
        if (!mount.options.empty()) text += ":" + mount.options;
        add_option(words, "--volume", std::move(text));
    }
}

std::string port_text(const Port& port) {
    std::string text;
    if (!port.host_ip.empty())
        text = (port.host_ip.find(':') != std::string::npos ? "[" + port.host_ip + "]" : port.host_ip) + ":";
    if (port.published != 0) text += std::to_string(port.published);
    if (!text.empty()) text += ":";
    return fmt::format("{}{}/{}", text, port.target, port.protocol);
}

std::string network_name(const Project& project, const std::string& key) {
    for (const Network& network : project.networks)
        if (network.key == key) return network.name;
    return project.name + "_" + key;
}

void add_network(Desired& d, const Project& project, const Service& service) {
    if (!service.network_mode.empty()) {
        std::string mode = service.network_mode;
        if (mode.starts_with("service:"))
            if (const Service* other = project.find(mode.substr(8)))
                mode = "container:" + container_name(project, *other, 1);
        return add_option(d.words, "--network", mode);
    }
    // Firmware has no use for one, and a runtime that runs no hooks could not set it up.
    if (service.is_firmware()) return add_option(d.words, "--network", "none");
    Words keys = service.networks;
    if (keys.empty()) keys.emplace_back("default");
    add_option(d.words, "--network", network_name(project, keys[0]));
    add_option(d.words, "--network-alias", service.name);
    for (std::size_t i = 1; i < keys.size(); ++i)
        d.afterwards.push_back({"network", "connect", "--alias", service.name, network_name(project, keys[i]), d.name});
}

host::Result<void> add_runtime(Words& words, Words& front, const Service& service, const TargetFacts& facts) {
    if (service.runtime.empty()) return {};
    if (facts.kind == EngineKind::Docker) {
        add_option(words, "--runtime", service.runtime);
    } else {
        // Podman knows a runtime by its path without any configuration; through its sockets it would be lost
        // (section 18.4).
        if (service.is_firmware() && facts.remoteproc_runtime.empty())
            return std::unexpected(host::Error(
                ErrorCode::NotFound,
                fmt::format("service \"{}\" needs the Remoteproc Runtime, and the target has none", service.name),
                next_command_on_target("install remoteproc-runtime")));
        add_option(front, "--runtime", service.is_firmware() ? facts.remoteproc_runtime : service.runtime);
    }
    return {};
}

void add_annotations(Words& words, const Service& service, const TargetFacts& facts) {
    const bool takes = facts.kind == EngineKind::Podman || major_version(facts.info.version) >= kFirstAnnotatingDocker;
    for (const auto& [name, value] : service.annotations) {
        if (takes) {
            add_option(words, "--annotation", name + "=" + value);
            continue;
        }
        // An older Docker refuses the flag, and nothing of it would reach the bundle: a label shows the domain in `topo
        // ps`, a variable tells the runtime.
        add_option(words, "--label", name + "=" + value);
        if (name == kRemoteprocAnnotation) add_option(words, "--env", "REMOTEPROC_NAME=" + value);
    }
}

host::Result<Desired> desired(const Project& project, const Service& service, int number, const Image& image,
                              const TargetFacts& facts) {
    Desired d;
    d.service = service.name;
    d.name = container_name(project, service, number);
    d.number = number;
    d.image = startable_name(facts.kind, project.image_of(service));
    d.image_id = image.id;
    d.hash = service.config_hash;
    d.firmware = service.is_firmware();
    d.depends_on = service.depends_on;
    d.healthcheck = service.healthcheck;
    d.ports = service.ports;
    d.stop_grace_period = service.stop_grace_period;
    Words front;
    d.words = {"run", "--detach", "--name", d.name};
    TRY(add_runtime(d.words, front, service, facts));
    add_labels(d.words, project, service, number, image);
    add_annotations(d.words, service, facts);
    for (const auto& [name, value] : service.environment) add_option(d.words, "--env", name + "=" + value);
    for (const auto& [name, value] : service.extra_hosts) add_option(d.words, "--add-host", name + ":" + value);
    for (const auto& [name, value] : service.sysctls) add_option(d.words, "--sysctl", name + "=" + value);
    for (const std::string& device : service.devices) add_option(d.words, "--device", device);
    for (const Port& port : service.ports) add_option(d.words, "--publish", port_text(port));
    for (const auto& [flag, value] : service.run_flags) {
        d.words.push_back(flag);
        if (!value.empty()) d.words.push_back(value);
    }
    add_mounts(d.words, project, service);
    add_network(d, project, service);
    if (!service.restart.empty()) add_option(d.words, "--restart", service.restart);
    if (service.stop_grace_period)
        add_option(d.words, "--stop-timeout", std::to_string((service.stop_grace_period->count() + 999) / 1000));
    if (service.healthcheck) add_healthcheck(d.words, *service.healthcheck, facts.kind);
    Words arguments;
    if (service.entrypoint) {
        add_option(d.words, "--entrypoint", service.entrypoint->empty() ? "" : service.entrypoint->front());
        if (service.entrypoint->size() > 1)
            arguments.assign(service.entrypoint->begin() + 1, service.entrypoint->end());
    }
    if (service.command) arguments.insert(arguments.end(), service.command->begin(), service.command->end());
    d.image_at = front.size() + d.words.size();
    d.words.push_back(d.image);
    d.words.insert(d.words.end(), arguments.begin(), arguments.end());
    d.words.insert(d.words.begin(), front.begin(), front.end());
    return d;
}

}  // namespace

std::string container_name(const Project& project, const Service& service, int number) {
    if (!service.container_name.empty()) return service.container_name;
    return fmt::format("{}-{}-{}", project.name, service.name, number);
}

std::string startable_name(EngineKind kind, const std::string& image) {
    if (kind == EngineKind::Docker) return image;
    const std::size_t slash = image.find('/');
    const std::string first = slash == std::string::npos ? "" : image.substr(0, slash);
    const bool registry =
        first.find('.') != std::string::npos || first.find(':') != std::string::npos || first == "localhost";
    return registry ? image : "localhost/" + image;
}

std::vector<const Service*> in_start_order(const Project& project) {
    std::vector<const Service*> order;
    std::set<std::string> done;
    while (order.size() < project.services.size()) {
        const std::size_t before = order.size();
        for (const Service& service : project.services) {
            if (done.contains(service.name)) continue;
            const bool ready = std::all_of(
                service.depends_on.begin(), service.depends_on.end(),
                [&](const Dependency& d) { return done.contains(d.service) || project.find(d.service) == nullptr; });
            if (!ready) continue;
            done.insert(service.name);
            order.push_back(&service);
        }
        if (order.size() == before) break;
    }
    return order;
}

std::vector<Resource> resources(const Project& project) {
    std::vector<Resource> all;
    std::set<std::string> keys;
    for (const Service& service : project.services) {
        if (service.scale == 0 || !service.network_mode.empty() || service.is_firmware()) continue;
        if (service.networks.empty()) keys.insert("default");
        keys.insert(service.networks.begin(), service.networks.end());
    }
    for (const std::string& key : keys) {
        const auto known = std::find_if(project.networks.begin(), project.networks.end(),
                                        [&](const Network& n) { return n.key == key; });
        const std::string name = network_name(project, key);
        all.push_back({"network",
                       name,
                       known != project.networks.end() && known->external,
                       {"network", "create", "--label", fmt::format("{}={}", kLabelProject, project.name), "--label",
                        fmt::format("{}={}", kLabelNetwork, key), name}});
    }
    for (const NamedVolume& volume : project.volumes) {
        Words words = {"volume",  "create",
                       "--label", fmt::format("{}={}", kLabelProject, project.name),
                       "--label", fmt::format("{}={}", kLabelVolume, volume.key)};
        if (!volume.driver.empty()) add_option(words, "--driver", volume.driver);
        for (const auto& [name, value] : volume.driver_options) add_option(words, "--opt", name + "=" + value);
        for (const auto& [name, value] : volume.labels) add_option(words, "--label", name + "=" + value);
        words.push_back(volume.name);
        all.push_back({"volume", volume.name, volume.external, std::move(words)});
    }
    return all;
}

host::Result<std::vector<Desired>> desired_containers(const Project& project,
                                                      const std::map<std::string, Image>& images,
                                                      const TargetFacts& facts) {
    std::vector<Desired> all;
    for (const Service* service : in_start_order(project)) {
        if (service->scale == 0) continue;
        const auto image = images.find(service->name);
        if (image == images.end())
            return host::failure(ErrorCode::NotFound, "the image {} of service \"{}\" is not on the target",
                                 project.image_of(*service), service->name);
        if (service->scale > 1 && !service->container_name.empty())
            return host::failure(ErrorCode::InvalidArgument,
                                 "service \"{}\" has a container_name, so it cannot run {} times", service->name,
                                 service->scale);
        for (int number = 1; number <= service->scale; ++number) {
            TRY_ASSIGN(Desired d, desired(project, *service, number, image->second, facts));
            all.push_back(std::move(d));
        }
    }
    return all;
}

}  // namespace talpa::topo
