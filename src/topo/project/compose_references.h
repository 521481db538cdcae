// Between the parts of a project: what a service names must be there, and must not lead back to it; no two want the
// same name or port of the target.
#pragma once

#include "topo/project/compose_model.h"

namespace talpa::topo {

/// Findings: compose.reference, compose.cycle.
[[nodiscard]] Checked<void> check_references(const std::string& file, const Project& project, const Findings& findings);

/// What containers that run at the same time cannot both have: one name, one port of the target. Only who is about to
/// start them must know (findings: compose.clash); what runs already can be looked at and stopped.
/// `every_profile`: the project's services are those of all profiles, as lint takes them, which need not run together.
[[nodiscard]] Checked<void> check_clashes(const std::string& file, const Project& project, bool every_profile,
                                          const Findings& findings);

}  // namespace talpa::topo
