// What health and doctor look at: a target, which if it is a virtual board must be up already.
#pragma once

#include "topo/cli/commands.h"
#include "topo/target/health.h"

namespace talpa::topo {

/// The target as it was given; nothing is brought up.
[[nodiscard]] std::expected<std::optional<Destination>, Failure> given_target(const Invocation& invocation);
/// What mends the connection to a virtual board that is not up, as look_at_target says it.
inline constexpr const char* kBringUp = "Bring the board up";
/// As check_target(); a board that is not up is a finding of its connectivity.
[[nodiscard]] TargetHealth look_at_target(const Destination& destination, const HealthOptions& options);

}  // namespace talpa::topo
