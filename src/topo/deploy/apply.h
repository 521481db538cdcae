// Brings the containers of a target to what is desired, without Compose: what has not changed stays, what has is
// replaced, with the old one kept aside until the new ones are known to be good. Whatever goes wrong, nothing
// half-deployed stays without being named.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "topo/deploy/desired.h"

namespace talpa::topo {

enum class Recreate { Changed, Always, Never };

enum class Act { Keep, Start, Create, Replace, Remove };
[[nodiscard]] std::string_view name_of(Act act);

struct Step {
    Act act = Act::Keep;
    Desired desired;                    ///< not for Remove
    std::optional<Container> existing;  ///< not for Create
    /// What a deployment that was cut had put aside for `existing`, which was never seen to be good: the one to come
    /// back if this deployment fails too.
    std::optional<Container> comeback;
    std::string why;  ///< of what would not be replaced for its own sake; else empty
};

struct ApplyPlan {
    std::vector<Step> steps;
    std::vector<Container> orphans;    ///< of services that are no longer in the file
    std::vector<Container> leftovers;  ///< what a topo that was killed had put aside; goes at the end
    std::vector<Resource> resources;
};

struct ApplyOptions {
    Recreate recreate = Recreate::Changed;
    bool remove_orphans = false;
    Milliseconds wait{30'000};  ///< the health gate; 0: none
    bool roll_back = true;
    bool cut = false;         ///< the last deployment did not come to its end (record.h)
    bool one_by_one = false;  ///< in the order given: nobody knows who depends on whom
};

/// Was it put aside for another one? Then its name says so, and either topo is at work or one was killed in it.
[[nodiscard]] bool is_aside(const Container& container);

[[nodiscard]] std::string aside_name(const std::string& name);

/// Running, or what ends only when it is stopped: paused, restarting.
[[nodiscard]] bool is_up(const Container& container);

[[nodiscard]] ApplyPlan plan_apply(std::vector<Desired> desired, const std::vector<Container>& existing,
                                   std::vector<Resource> resources, const ApplyOptions& options);
[[nodiscard]] bool changes_something(const ApplyPlan& plan, const ApplyOptions& options);

/// What happens to which container: "Created", "Started", "Recreated", "Running", "Healthy", "Removed", "Restored".
using ApplyEvents = std::function<void(const std::string& container, std::string_view what)>;

/// Carries it out, waits until all are healthy, and then removes what was kept aside; otherwise puts the old containers
/// back. The error says what happened and what is running now; `as_before`: whether, after an error, all is as it was.
/// What a good deployment could not remove is warned about.
[[nodiscard]] host::Result<void> apply(const Engine& engine, const ApplyPlan& plan, const ApplyOptions& options,
                                       const ApplyEvents& events, bool& as_before);

/// Stops or starts in dependency order (as the containers' services stand in `order`).
[[nodiscard]] host::Result<void> stop_containers(const Engine& engine, const std::vector<Container>& containers,
                                                 const ApplyEvents& events);
[[nodiscard]] host::Result<void> remove_containers(const Engine& engine, const std::vector<Container>& containers,
                                                   const ApplyEvents& events);

}  // namespace talpa::topo
