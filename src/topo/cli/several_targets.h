// One deployment to many targets: from several --target flags, or from a file with groups.
#pragma once

#include <string>
#include <vector>

#include "topo/cli/commands.h"

namespace talpa::topo {

/// A targets file: one destination a line, "[group]" lines, '#' comments. Only the named groups, or all.
[[nodiscard]] host::Result<std::vector<std::string>> parse_targets(const std::string& text,
                                                                   const std::vector<std::string>& groups);

/// All destinations that the flags name.
[[nodiscard]] std::expected<std::vector<std::string>, Failure> all_targets(const Invocation& invocation);

/// The first alone, so that its build serves the others, then the rest at the same time; a table of results at the end.
[[nodiscard]] Done deploy_to_all(const Invocation& invocation, const std::vector<std::string>& targets);

}  // namespace talpa::topo
