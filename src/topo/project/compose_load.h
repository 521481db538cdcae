// From files to one resolved tree: YAML, interpolation, several documents, include, extends, with relative paths made
// absolute and list forms turned into mappings, as Compose does before anything looks at a service.
#pragma once

#include <filesystem>

#include "topo/project/variables.h"
#include "topo/project/yaml.h"

namespace talpa::topo {

/// The root mapping. Every node keeps the mark of where it was written; `origin` in findings is that file.
/// Findings: yaml.*, compose.empty, compose.interpolation, compose.extends, compose.include, compose.schema.
[[nodiscard]] Checked<yaml::NodePtr> load_tree(const std::filesystem::path& file, const Variables& variables,
                                               const Findings& findings);

}  // namespace talpa::topo
