// What is to be done to the containers of a target, from what is desired and what is there.
#include <algorithm>
#include <set>
#include <utility>

#include "topo/deploy/apply.h"

namespace talpa::topo {
namespace {

constexpr std::string_view kAside = "topo-old-";

// The containers whose network, processes or IPC it runs in ("--network", "container:NAME").
std::vector<std::string> lenders(const Desired& d) {
    constexpr std::string_view kContainer = "container:";
    std::vector<std::string> names;
    for (std::size_t i = 0; i + 1 < std::min(d.image_at, d.words.size()); ++i)
        if ((d.words[i] == "--network" || d.words[i] == "--ipc" || d.words[i] == "--pid") &&
            d.words[i + 1].starts_with(kContainer))
            names.push_back(d.words[i + 1].substr(kContainer.size()));
    return names;
}

// What it had of another is gone with that, or stays behind with what is left of that one: such a container is made
// anew. Whether one is depends on another that is, so until there is no more.
void follow_lenders(std::vector<Step>& steps) {
    const auto follows = [&](Step& step) {
        if (step.act != Act::Keep && step.act != Act::Start) return false;
        for (const std::string& name : lenders(step.desired))
            for (const Step& other : steps) {
                if (other.act == Act::Remove || other.desired.name != name) continue;
                const bool fresh = other.act == Act::Create || other.act == Act::Replace;
                // One that was stopped has a new network when it starts, which others that start then find.
                const bool again =
                    other.act == Act::Start && other.existing->state != "paused" && step.act == Act::Keep;
                if (!fresh && !again) continue;
                step.why = fmt::format("it lives in {}, which this {}s", name, name_of(other.act));
                step.act = Act::Replace;
                return true;
            }
        return false;
    };
    while (std::any_of(steps.begin(), steps.end(), follows)) {
    }
}

}  // namespace

std::string_view name_of(Act act) {
    switch (act) {
        case Act::Keep:
            return "keep";
        case Act::Start:
            return "start";
        case Act::Create:
            return "create";
        case Act::Replace:
            return "replace";
        case Act::Remove:
            return "remove";
    }
    return "keep";
}

bool is_aside(const Container& container) {
    return container.name.starts_with(kAside);
}

std::string aside_name(const std::string& name) {
    return std::string(kAside) + name;
}

bool is_up(const Container& c) {
    return c.state == "running" || c.state == "restarting" || c.state == "paused";
}

ApplyPlan plan_apply(std::vector<Desired> desired, const std::vector<Container>& existing,
                     std::vector<Resource> resources, const ApplyOptions& options) {
    ApplyPlan plan;
    plan.resources = std::move(resources);
    std::set<std::string> services, taken;
    for (const Desired& d : desired) services.insert(d.service);
    for (Desired& d : desired) {
        Step step;
        // One that a killed topo had put aside is the service's only if there is no other; it is the good one, though.
        auto found = existing.end();
        for (const bool aside : {false, true})
            if (found == existing.end())
                found = std::find_if(existing.begin(), existing.end(), [&](const Container& c) {
                    return !c.oneoff && is_aside(c) == aside &&
                           (c.name == d.name || (c.service == d.service && c.number == d.number));
                });
        if (found == existing.end()) {
            step.act = Act::Create;
        } else {
            step.existing = *found;
            taken.insert(found->id);
            const bool changed = found->hash != d.hash || (!found->image_id.empty() && found->image_id != d.image_id);
            const bool replace =
                options.recreate == Recreate::Always || (options.recreate == Recreate::Changed && changed);
            step.act = replace ? Act::Replace : found->state == "running" ? Act::Keep : Act::Start;
        }
        if (options.cut && step.act != Act::Create && !is_aside(*step.existing)) {
            const auto good = std::find_if(existing.begin(), existing.end(), [&](const Container& c) {
                return !c.oneoff && is_aside(c) && c.service == d.service && c.number == d.number;
            });
            if (good != existing.end()) {
                step.comeback = *good;
                taken.insert(good->id);
            }
        }
        step.desired = std::move(d);
        plan.steps.push_back(std::move(step));
    }
    if (options.recreate != Recreate::Never) follow_lenders(plan.steps);
    for (const Container& c : existing) {
        if (taken.contains(c.id) || c.oneoff) continue;
        if (is_aside(c)) {
            plan.leftovers.push_back(c);
            continue;
        }
        if (services.contains(c.service)) {  // a higher number than scale wants
            Step step;
            step.act = Act::Remove;
            step.existing = c;
            plan.steps.push_back(std::move(step));
        } else {
            plan.orphans.push_back(c);
        }
    }
    return plan;
}

bool changes_something(const ApplyPlan& plan, const ApplyOptions& options) {
    return !plan.leftovers.empty() || (options.remove_orphans && !plan.orphans.empty()) ||
           std::any_of(plan.steps.begin(), plan.steps.end(), [](const Step& step) {
               return step.act != Act::Keep || step.comeback || step.existing->name != step.desired.name;
           });
}

}  // namespace talpa::topo
