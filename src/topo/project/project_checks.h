// What deploy asks of a project before it builds anything (topo spec, section 6.2), and everything that lint says.
#pragma once

#include "topo/project/compose_model.h"

namespace talpa::topo {

/// Every service must name linux/arm64 (or a variant), unless it is firmware: one finding a service. And there must be
/// one, which the original leaves to the engine to say.
[[nodiscard]] std::vector<Finding> check_project(const Project& project, const std::string& file);
/// Build contexts of this machine, and their Dockerfiles, that are not there: the engine would say so in the middle.
[[nodiscard]] std::vector<Finding> check_contexts(const Project& project, const std::string& file);
/// The text of section 8.2 for these findings.
[[nodiscard]] std::string project_message(const std::vector<Finding>& findings);

/// All that can be said about a file: YAML, the schema of x-topo, Compose's own rules, the wiring of parameters.
/// Sorted by position. Variables as deploy would see them.
[[nodiscard]] std::vector<Finding> lint(const std::filesystem::path& file);

}  // namespace talpa::topo
