// Are the new containers good? Docker runs health checks itself; Podman's run only under systemd, so topo runs them
// (topo spec, section 18.4). Without a check a container must stay up for a moment, and its published TCP ports must
// accept.
#pragma once

#include "topo/deploy/desired.h"

namespace talpa::topo {

/// How long a container without a health check is watched that has just been started.
inline constexpr Milliseconds kSettleTime{1500};

/// Returns when all are good; an error names the container, what it said last and its log's end.
[[nodiscard]] host::Result<void> wait_until_good(const Engine& engine, const std::vector<Desired>& containers,
                                                 Milliseconds limit);
/// Until `dependency` is as the condition says.
[[nodiscard]] host::Result<void> wait_for_dependency(const Engine& engine, const std::string& container,
                                                     const Dependency& dependency,
                                                     const std::optional<Healthcheck>& check, Milliseconds limit);

}  // namespace talpa::topo
