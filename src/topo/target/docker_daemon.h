// Docker that is installed and does not run: how to see it, and what starts it.
#pragma once

#include <string>

#include "topo/target/destination.h"

namespace talpa::topo {

/// For /bin/sh: prints the path of an installed dockerd, or fails. The client alone (`docker`) is no engine.
extern const char* const kDockerDaemonScript;

/// What starts Docker there, to be pasted here.
[[nodiscard]] std::string docker_start_command(const Destination& destination);

}  // namespace talpa::topo
