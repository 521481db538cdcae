// Everything that would make a deployment fail late, asked before anything is built: all findings at once, each with the
// command that mends it.
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
/// Ports in state LISTEN of /proc/net/tcp and tcp6.
[[nodiscard]] std::vector<std::uint16_t> parse_listening(const std::string& text);

[[nodiscard]] std::vector<PreflightFinding> judge(const Project& project, const TargetState& state, const TargetFacts& facts, const std::vector<Container>& existing, const Destination& destination);

}  // namespace talpa::topo
