// Values for a project's parameters (topo spec, sections 6.3, 7.3): what the file has now, what the command line and
// the questions give, and whether every required one ends up with a value.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "topo/project/x_topo.h"

namespace talpa::topo {

/// The raw texts of this build arg, in service order; services of the root file only.
[[nodiscard]] std::vector<std::string> current_values(const yaml::Node& root, const std::string& name);

/// Answers the question for one parameter: nothing at the end of input; blank = keep.
using Prompt = std::function<std::optional<std::string>(const Parameter&, const std::vector<std::string>& current)>;

using Values = std::map<std::string, std::string>;

/// "NAME=VALUE" words; later ones win. Errors: "invalid argument format: X (expected ARG=VALUE)",
/// "unknown argument: X" (not in a project without parameters, where all are ignored).
[[nodiscard]] host::Result<Values> parse_values(const std::vector<std::string>& words, const XTopo& x_topo);

/// The text of section 7.3, or nothing if every required parameter is satisfied.
[[nodiscard]] std::optional<std::string> missing_values(const yaml::Node& root, const XTopo& x_topo,
                                                        const Values& provided);

/// Command line first, then questions (if there is anybody to ask), and an end as soon as all required are satisfied.
[[nodiscard]] host::Result<Values> resolve_values(const yaml::Node& root, const XTopo& x_topo,
                                                  const std::vector<std::string>& words, const Prompt& prompt);

}  // namespace talpa::topo
