// From a project to containers: what each must be called, which labels it carries and with which words the engine makes
// it. Names and labels are those of Compose (topo spec, section 8), so that either tool can take over.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "topo/engine/engine.h"
#include "topo/project/compose_model.h"

namespace talpa::topo {

struct Desired {
    std::string service, name;
    int number = 1;
    std::string image, image_id;  ///< the name that is started, and what it must be
    std::string hash;
    bool firmware = false;
    std::vector<std::string> words;                    ///< behind the engine's name: "run", "-d", …
    std::size_t image_at = 0;                          ///< which of them is the image
    std::vector<std::vector<std::string>> afterwards;  ///< "network", "connect", … once it exists
    std::vector<Dependency> depends_on;
    std::optional<Healthcheck> healthcheck;
    std::vector<Port> ports;
    std::optional<Milliseconds> stop_grace_period;
    bool settled = false;  ///< it ran before: need not be watched for a while
};

struct TargetFacts {
    EngineKind kind = EngineKind::Docker;
    EngineInfo info;
    std::string remoteproc_runtime;  ///< its path on the target; empty if it is not installed
};

/// In an order in which every container comes after those it depends on. `images`: by service, as they are on the
/// target.
[[nodiscard]] host::Result<std::vector<Desired>> desired_containers(const Project& project,
                                                                    const std::map<std::string, Image>& images,
                                                                    const TargetFacts& facts);

/// Services in the order of their depends_on (cycles were refused while loading).
[[nodiscard]] std::vector<const Service*> in_start_order(const Project& project);

/// Networks and volumes that must exist before, by name, with the words that make them.
struct Resource {
    const char* kind;  ///< "network", "volume"
    std::string name;
    bool external = false;
    std::vector<std::string> words;
};
[[nodiscard]] std::vector<Resource> resources(const Project& project);

/// "PROJECT-SERVICE-N", or the service's container_name.
[[nodiscard]] std::string container_name(const Project& project, const Service& service, int number);

/// The name under which an image is started: Podman wants localhost/ in front of names without a registry.
[[nodiscard]] std::string startable_name(EngineKind kind, const std::string& image);

}  // namespace talpa::topo
