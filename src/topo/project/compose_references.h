// Between the parts of a project: what a service names must be there, and must not lead back to it; no two want the
// same name or port of the target.
#pragma once

#include "topo/project/compose_model.h"

namespace talpa::topo {

/// Findings: compose.reference, compose.cycle, compose.clash.
/// `every_profile`: the project's services are those of all profiles, as lint takes them, which need not run together.
[[nodiscard]] Checked<void> check_references(const std::string& file, const Project& project, bool every_profile,
                                             const Findings& findings);

}  // namespace talpa::topo
