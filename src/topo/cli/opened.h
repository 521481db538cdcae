// What most commands on a running project start with: the project as its target sees it, and the target's engine.
#pragma once

#include "topo/cli/commands.h"
#include "topo/deploy/pipeline.h"

namespace talpa::topo {

struct Opened {
    Project project;
    Engine engine;
};

/// Loads the project of -f, connects to --target, finds its engine.
[[nodiscard]] std::expected<Opened, Failure> open_project(const Invocation& invocation);

/// A question on the terminal; no where there is none.
[[nodiscard]] bool confirmed(const std::string& question);

}  // namespace talpa::topo
