// What a target is made of (topo spec, section 4): processors from lscpu, remote processors from sysfs, memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/host/error.h"

namespace talpa::topo {

struct HostProcessor {
    std::string model;
    int cores = 0;
    std::vector<std::string> features;
};

struct Hardware {
    std::vector<HostProcessor> host_processors;
    std::vector<std::string> remote_processors;
    std::uint64_t total_memory_kb = 0;

    /// Names for matching a project's features: NEON, SVE, SVE2, SME, SME2, remoteproc, remoteproc-runtime.
    [[nodiscard]] std::vector<std::string> feature_names() const;
};

/// The answer of `lscpu --json`, or of plain `lscpu` where that has no JSON. Errors: no JSON and no table;
/// "could not determine CPU units".
[[nodiscard]] host::Result<std::vector<HostProcessor>> parse_lscpu(const std::string& text);
/// MemTotal of /proc/meminfo.
[[nodiscard]] host::Result<std::uint64_t> parse_meminfo(const std::string& text);
/// The names in /sys/class/remoteproc/*/name, one a line.
[[nodiscard]] std::vector<std::string> parse_remoteprocs(const std::string& text);

/// "hostProcessors:\n    - model: …"
[[nodiscard]] std::string hardware_yaml(const Hardware& hardware);
[[nodiscard]] std::string hardware_json(const Hardware& hardware);

/// Which of the wanted features are not there (any case).
[[nodiscard]] std::vector<std::string> missing_features(const std::vector<std::string>& wanted,
                                                        const std::vector<std::string>& have);

}  // namespace talpa::topo
