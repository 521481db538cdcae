// A Compose project as topo works with it: services with the values that its own apply, its plan and its checks need.
// What only becomes a flag of `run` stays a list of flags (table in compose_keys.h); what cannot be honoured without
// the Compose plugin is listed in `not_honoured`.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "topo/project/variables.h"
#include "topo/project/yaml.h"

namespace talpa::topo {

using Pairs = std::vector<std::pair<std::string, std::string>>;

struct Build {
    std::string context;  ///< absolute folder on HOST, or a URL
    std::string dockerfile = "Dockerfile";
    std::string dockerfile_inline;
    std::string target;
    Pairs args;
    Pairs additional_contexts;  ///< name → "service:NAME", an absolute folder, or a URL
    std::vector<std::string> cache_from;
    std::vector<std::string> tags;
    Pairs labels;
    Pairs extra_hosts;
    std::string network;
    bool no_cache = false;
    Mark mark;
};

struct Port {
    std::string host_ip;          ///< empty: all addresses
    std::uint16_t published = 0;  ///< 0: the engine chooses
    std::uint16_t target = 0;
    std::string protocol = "tcp";
    Mark mark;
};

struct Mount {
    enum class Type { Bind, Volume, Tmpfs } type = Type::Volume;
    std::string source;  ///< a path on TARGET, or the name of a volume (as in the file); empty: anonymous
    std::string target;
    std::string options;  ///< "ro", "rw,z", … as behind the second colon
    Mark mark;
};

struct Dependency {
    std::string service;
    enum class Condition { Started, Healthy, Completed } condition = Condition::Started;
    bool required = true;
    Mark mark;
};

struct Healthcheck {
    bool disabled = false;
    std::vector<std::string> test;  ///< {"CMD", …} or {"CMD-SHELL", text}; empty: the image's own
    std::chrono::milliseconds interval{30'000}, timeout{30'000}, start_period{0};
    int retries = 3;
};

struct Service {
    std::string name;
    Mark mark;
    std::string image;  ///< as written; empty if only built
    std::optional<Build> build;
    std::string platform, runtime, container_name, network_mode, restart, pull_policy;
    int scale = 1;
    bool privileged = false;
    std::vector<std::string> profiles;
    std::optional<std::vector<std::string>> command, entrypoint;
    Pairs environment;  ///< env files included, what the file says itself wins
    Pairs labels, annotations, extra_hosts, sysctls;
    std::vector<Port> ports;
    std::vector<Mount> mounts;
    std::vector<std::string> devices;
    std::vector<std::string> networks;
    std::vector<Dependency> depends_on;
    std::optional<Healthcheck> healthcheck;
    std::optional<std::chrono::milliseconds> stop_grace_period;
    Pairs run_flags;          ///< "--user" → "1000"; switches have an empty value
    std::string config_hash;  ///< of the resolved service; Compose's label com.docker.compose.config-hash

    /// A service whose runtime has "remoteproc" in its name runs on another processor (section 6.2).
    [[nodiscard]] bool is_firmware() const;
    /// Only in a network of its own are a container's ports published; firmware is in none.
    [[nodiscard]] bool publishes_ports() const;
};

struct NamedVolume {
    std::string key, name;
    bool external = false;
    std::string driver;
    Pairs driver_options, labels;
};

struct Network {
    std::string key, name;
    bool external = false;
};

struct NotHonoured {
    std::string path;  ///< "services.web.secrets"
    Mark mark;
};

struct Project {
    std::string name;
    std::filesystem::path file, folder;
    std::vector<Service> services;  ///< of the active profiles, in the order of writing
    std::vector<std::string> inactive;
    std::vector<NamedVolume> volumes;
    std::vector<Network> networks;
    std::vector<NotHonoured> not_honoured;
    std::vector<std::string> missing_variables;
    std::optional<std::string> success_message;  ///< interpolated
    bool success_message_is_text = true;

    [[nodiscard]] const Service* find(std::string_view service) const;
    /// `image`, or PROJECT-SERVICE.
    [[nodiscard]] std::string image_of(const Service& service) const;
};

struct LoadOptions {
    std::filesystem::path file;
    std::vector<std::string> profiles;  ///< with COMPOSE_PROFILES
    Pairs variables;                    ///< TOPO_TARGET, …: win over the environment
    /// If given, what is wrong with single keys and values goes there, and the reading goes on without them.
    std::vector<Finding>* all = nullptr;
};

/// Everything that deploy does before it touches an engine, apart from the checks of project_checks.h.
[[nodiscard]] Checked<Project> load_project(const LoadOptions& options);

/// Compose's rule: lower case, letters, digits, '-' and '_', starting with a letter or digit.
[[nodiscard]] std::string normalised_project_name(std::string_view name);

}  // namespace talpa::topo
