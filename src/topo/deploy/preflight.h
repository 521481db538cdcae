// Everything that would make a deployment fail late, asked before anything is built: all findings at once, each with
// the command that mends it.
#pragma once

#include <string>
#include <vector>

#include "topo/deploy/desired.h"
#include "topo/target/probe.h"

namespace talpa::topo {

struct PreflightFinding {
    std::string code;  ///< "target.port.taken"
    bool error = true;
    std::string message, fix;
};

struct RemoteProcessor {
    std::string name, state, folder;
};

struct TargetState {
    std::string machine;  ///< of uname -m
    std::vector<std::uint16_t> listening;
    std::vector<RemoteProcessor> remote_processors;
    std::string runtime_path, shim_path;
    std::uint64_t free_kb = 0;
    bool knows_free = false;
};

[[nodiscard]] std::vector<ProbeCheck> preflight_checks(const EngineInfo& engine);
[[nodiscard]] TargetState parse_target_state(const ProbeAnswers& answers);

/// `existing`: the project's containers; `others`: those of other projects, which may hold what this one wants (only
/// asked for when something is taken, see is_taken).
[[nodiscard]] std::vector<PreflightFinding> judge(const Project& project, const TargetState& state,
                                                  const TargetFacts& facts, const std::vector<Container>& existing,
                                                  const Destination& destination,
                                                  const std::vector<Container>& others = {});
/// Is it a port or a remote processor that somebody else has?
[[nodiscard]] bool is_taken(const PreflightFinding& finding);

}  // namespace talpa::topo
