// An `ssh` for programs that run ssh themselves (`docker -H ssh://…`): the user's own, with the options by which Target
// reaches this destination, so that they share its connection, and find a virtual board.
#pragma once

#include <string>

#include "topo/target/target.h"

namespace talpa::topo {

/// The folder that holds it, to be put first on PATH; empty where there is no folder for it, or no need.
[[nodiscard]] host::Result<std::string> ssh_shim(const Target& target);

}  // namespace talpa::topo
