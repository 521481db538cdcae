// Images to the target by a registry on this machine and an SSH tunnel, as Arm's topo sends them (topo spec,
// section 8.2, c1 to c5): for targets that only pull. It needs the image registry:2 here, or a network to pull it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "topo/deploy/transfer.h"
#include "topo/engine/engine.h"

namespace talpa::topo {

inline constexpr int kDefaultRegistryPort = 12737;

struct RegistryOptions {
    int port = kDefaultRegistryPort;  ///< here and on the target, on loopback
    bool skip_exposure_check = false;
};

/// Starts the registry, opens the tunnel, sends what the plan says, closes the tunnel whatever happens. `stage` is
/// called with the titles of the original's sections, `said` with what the engines print.
[[nodiscard]] host::Result<void> send_by_registry(const TransferPlan& plan, const Engine& host, const Engine& target,
                                                  const RegistryOptions& options,
                                                  const std::function<void(std::string_view)>& stage,
                                                  const std::function<void(std::string_view)>& said);

/// The name behind "localhost:PORT/": without a digest, without Podman's "localhost/".
[[nodiscard]] std::string registry_name(const std::string& image, int port);
/// "sha256:…" out of what a push prints ("latest: digest: sha256:… size: 528"); empty if it is not there.
[[nodiscard]] std::string pushed_digest(std::string_view line);

struct RegistryContainer {
    std::string state;  ///< "running", "exited", "created"
    int port = 0;       ///< published for 5000/tcp; 0: none
};
/// Of `inspect` of one container. Errors: not its JSON.
[[nodiscard]] host::Result<RegistryContainer> parse_registry_container(const std::string& inspect_json);

}  // namespace talpa::topo
