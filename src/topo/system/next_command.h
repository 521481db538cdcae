// The command that is printed as the next one carries what was given to this one, so that it can be pasted as it is.
#pragma once

#include <string>
#include <string_view>

namespace talpa::topo {

/// What this command line has of --target, -f and --engine, as it was written; empty: not given.
struct Given {
    std::string target, file, engine;
};
void remember_given(Given given);

/// "topo prune --yes --target root@board -f 'my file.yaml'" for the words "prune --yes". `target`: for when it has to
/// be named even though it came from the environment. Of `install` and the like, which know no project, only the
/// target. `file` likewise: for when it was found.
[[nodiscard]] std::string next_command(std::string_view words, std::string_view target = {},
                                       std::string_view file = {});
[[nodiscard]] std::string next_command_on_target(std::string_view words, std::string_view target = {});

}  // namespace talpa::topo
