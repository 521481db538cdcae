// The health checks of topo (topo spec, section 5), as rows of a table: one for this machine, one for the target. The
// target's are answered by one probe in one login shell, each with a limit of its own.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "topo/target/probe.h"
#include "topo/target/ssh_error.h"

namespace talpa::topo {

enum class Status { Ok, Warning, Error, Info };

struct Fix {
    std::string description, command;
};

struct Check {
    std::string name;
    Status status = Status::Ok;
    std::string value;
    std::optional<Fix> fix;
};

/// The first Docker Compose that topo lets work.
inline constexpr std::string_view kLeastCompose = "2.21.0";
inline constexpr const char* kDriverCheck = "Processing Domain Driver (remoteproc)";

struct TargetHealth {
    Destination destination;
    Check connectivity;
    std::optional<SshFault> ssh_fault{};  ///< why there is no connection
    std::vector<Check> dependencies;
    Check driver;  ///< "Processing Domain Driver (remoteproc)"
};

struct Health {
    std::vector<Check> host;
    std::optional<TargetHealth> target;

    [[nodiscard]] bool has_errors() const;
};

struct HealthOptions {
    Milliseconds timeout{5000};
    bool accept_new_host_keys = false;
    /// The newest release, if it is known and not ours: (ours, newest).
    std::optional<std::pair<std::string, std::string>> outdated;
};

[[nodiscard]] std::vector<Check> check_host(const HealthOptions& options);
[[nodiscard]] TargetHealth check_target(const Destination& destination, const HealthOptions& options);

/// What the target's answers mean; separate from asking, so that any answer can be tested.
void judge_target(const ProbeAnswers& answers, TargetHealth& health);
[[nodiscard]] std::vector<ProbeCheck> health_checks();

[[nodiscard]] std::string health_plain(const Health& health);
[[nodiscard]] std::string health_json(const Health& health);

/// "2.21.0" ≤ version? Three numbers, an optional v, the rest ignored.
[[nodiscard]] bool version_at_least(std::string_view version, std::string_view least);

}  // namespace talpa::topo
