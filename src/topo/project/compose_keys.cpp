#include "topo/project/compose_keys.h"

namespace talpa::topo {
namespace {

using enum Shape;
using enum Handling;
using enum Join;

constexpr ComposeKey kService[] = {
    {"annotations", MapOrList, Own, Deep},
    {"attach", Scalar, Ignored},
    {"blkio_config", Mapping, Refused},
    {"build", Any, Own, Deep},
    {"cap_add", List, Flag, Append, "--cap-add"},
    {"cap_drop", List, Flag, Append, "--cap-drop"},
    {"cgroup", Scalar, Flag, Replace, "--cgroupns"},
    {"cgroup_parent", Scalar, Flag, Replace, "--cgroup-parent"},
    {"command", TextOrList, Own},
    {"configs", List, Refused, Append},
    {"container_name", Scalar, Own},
    {"cpu_count", Scalar, Refused},
    {"cpu_percent", Scalar, Refused},
    {"cpu_period", Scalar, Flag, Replace, "--cpu-period"},
    {"cpu_quota", Scalar, Flag, Replace, "--cpu-quota"},
    {"cpu_rt_period", Scalar, Flag, Replace, "--cpu-rt-period"},
    {"cpu_rt_runtime", Scalar, Flag, Replace, "--cpu-rt-runtime"},
    {"cpu_shares", Scalar, Flag, Replace, "--cpu-shares"},
    {"cpus", Scalar, Flag, Replace, "--cpus"},
    {"cpuset", Scalar, Flag, Replace, "--cpuset-cpus"},
    {"credential_spec", Mapping, Refused},
    {"depends_on", ListOrMap, Own, Deep},
    {"deploy", Mapping, Own, Deep},
    {"develop", Mapping, Ignored, Deep},
    {"device_cgroup_rules", List, Flag, Append, "--device-cgroup-rule"},
    {"devices", List, Own, Append},
    {"dns", TextOrList, Flag, Append, "--dns"},
    {"dns_opt", List, Flag, Append, "--dns-option"},
    {"dns_search", TextOrList, Flag, Append, "--dns-search"},
    {"domainname", Scalar, Refused},
    {"entrypoint", TextOrList, Own},
    {"env_file", Any, Own, Append},
    {"environment", MapOrList, Own, Deep},
    {"expose", List, Ignored, Append},
    {"extends", Any, Own},
    {"external_links", List, Refused, Append},
    {"extra_hosts", MapOrList, Own, Deep},
    {"gpus", Any, Refused},
    {"group_add", List, Flag, Append, "--group-add"},
    {"healthcheck", Mapping, Own, Deep},
    {"hostname", Scalar, Flag, Replace, "--hostname"},
    {"image", Scalar, Own},
    {"init", Scalar, Switch, Replace, "--init"},
    {"ipc", Scalar, Flag, Replace, "--ipc"},
    {"isolation", Scalar, Refused},
    {"label_file", TextOrList, Refused, Append},
    {"labels", MapOrList, Own, Deep},
    {"links", List, Refused, Append},
    {"logging", Mapping, Own, Deep},
    {"mac_address", Scalar, Flag, Replace, "--mac-address"},
    {"mem_limit", Scalar, Flag, Replace, "--memory"},
    {"mem_reservation", Scalar, Flag, Replace, "--memory-reservation"},
    {"mem_swappiness", Scalar, Flag, Replace, "--memory-swappiness"},
    {"memswap_limit", Scalar, Flag, Replace, "--memory-swap"},
    {"models", Any, Refused, Append},
    {"network_mode", Scalar, Own},
    {"networks", ListOrMap, Own, Deep},
    {"oom_kill_disable", Scalar, Switch, Replace, "--oom-kill-disable"},
    {"oom_score_adj", Scalar, Flag, Replace, "--oom-score-adj"},
    {"pid", Scalar, Flag, Replace, "--pid"},
    {"pids_limit", Scalar, Flag, Replace, "--pids-limit"},
    {"platform", Scalar, Own},
    {"ports", List, Own, Append},
    {"post_start", List, Refused, Append},
    {"pre_stop", List, Refused, Append},
    {"privileged", Scalar, Switch, Replace, "--privileged"},
    {"profiles", List, Own, Append},
    {"provider", Mapping, Refused},
    {"pull_policy", Scalar, Own},
    {"pull_refresh_after", Scalar, Ignored},
    {"read_only", Scalar, Switch, Replace, "--read-only"},
    {"restart", Scalar, Own},
    {"runtime", Scalar, Own},
    {"scale", Scalar, Own},
    {"secrets", List, Refused, Append},
    {"security_opt", List, Flag, Append, "--security-opt"},
    {"shm_size", Scalar, Flag, Replace, "--shm-size"},
    {"stdin_open", Scalar, Switch, Replace, "--interactive"},
    {"stop_grace_period", Scalar, Own},
    {"stop_signal", Scalar, Flag, Replace, "--stop-signal"},
    {"storage_opt", Mapping, Refused},
    {"sysctls", MapOrList, Own, Deep},
    {"tmpfs", TextOrList, Flag, Append, "--tmpfs"},
    {"tty", Scalar, Switch, Replace, "--tty"},
    {"ulimits", Mapping, Own, Deep},
    {"use_api_socket", Scalar, Refused},
    {"user", Scalar, Flag, Replace, "--user"},
    {"userns_mode", Scalar, Flag, Replace, "--userns"},
    {"uts", Scalar, Flag, Replace, "--uts"},
    {"volumes", List, Own, Append},
    {"volumes_from", List, Refused, Append},
    {"working_dir", Scalar, Flag, Replace, "--workdir"},
};

constexpr ComposeKey kBuild[] = {
    {"additional_contexts", MapOrList, Own, Deep},
    {"args", MapOrList, Own, Deep},
    {"cache_from", List, Own, Append},
    {"cache_to", List, Ignored, Append},
    {"context", Scalar, Own},
    {"dockerfile", Scalar, Own},
    {"dockerfile_inline", Scalar, Own},
    {"entitlements", List, Refused, Append},
    {"extra_hosts", MapOrList, Own, Deep},
    {"isolation", Scalar, Refused},
    {"labels", MapOrList, Own, Deep},
    {"network", Scalar, Own},
    {"no_cache", Scalar, Own},
    {"platforms", List, Ignored, Append},
    {"privileged", Scalar, Refused},
    {"provenance", Any, Ignored},
    {"pull", Scalar, Own},
    {"sbom", Any, Ignored},
    {"secrets", List, Refused, Append},
    {"shm_size", Scalar, Refused},
    {"ssh", Any, Refused, Append},
    {"tags", List, Own, Append},
    {"target", Scalar, Own},
    {"ulimits", Mapping, Refused, Deep},
};

constexpr ComposeKey kRoot[] = {
    {"configs", Mapping, Refused},    {"include", List, Own, Append},
    {"models", Mapping, Refused},     {"name", Scalar, Own},
    {"networks", Mapping, Own, Deep}, {"secrets", Mapping, Refused},
    {"services", Mapping, Own, Deep}, {"version", Scalar, Ignored},
    {"volumes", Mapping, Own, Deep},
};

}  // namespace

std::span<const ComposeKey> service_keys() {
    return kService;
}
std::span<const ComposeKey> build_keys() {
    return kBuild;
}
std::span<const ComposeKey> root_keys() {
    return kRoot;
}

const ComposeKey* find_key(std::span<const ComposeKey> keys, std::string_view name) {
    for (const ComposeKey& key : keys)
        if (key.name == name) return &key;
    return nullptr;
}

}  // namespace talpa::topo
