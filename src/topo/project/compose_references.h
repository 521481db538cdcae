// Between the parts of a project: what a service names must be there, and must not lead back to it.
#pragma once

#include "topo/project/compose_model.h"

namespace talpa::topo {

/// Findings: compose.reference, compose.cycle.
[[nodiscard]] Checked<void> check_references(const std::string& file, const Project& project, const Findings& findings);

}  // namespace talpa::topo
