#include "topo/deploy/apply.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "topo/deploy/docker_create.h"
#include "topo/deploy/health_gate.h"
#include "topo/deploy/words.h"
#include "topo/system/log.h"
#include "topo/system/next_command.h"
#include "topo/system/text.h"

namespace talpa::topo {
namespace {

constexpr std::string_view kAside = "topo-old-";

std::string advice_for(const std::string& said) {
    if (said.find("address already in use") != std::string::npos ||
        said.find("port is already allocated") != std::string::npos)
        return "another program has that port: stop it, or publish another port";
    if (said.find("setrlimit") != std::string::npos || said.find("rlimit") != std::string::npos)
        return "the engine may not raise limits here: set default_ulimits in /etc/containers/containers.conf of the "
               "target";
    if (said.find("hybrid mode") != std::string::npos)
        return "crun cannot run on a hybrid cgroup tree: unmount /sys/fs/cgroup/unified of the target, or use runc";
    if (said.find("unknown runtime") != std::string::npos || said.find("Unknown runtime") != std::string::npos)
        return "register it with the engine: dockerd --add-runtime "
               "io.containerd.remoteproc.v1=/usr/local/bin/remoteproc-runtime";
    if (said.find("No space left") != std::string::npos) return "the target's disk is full: " + next_command("prune");
    return {};
}

bool is_up(const Container& c) {
    return c.state == "running" || c.state == "restarting" || c.state == "paused";
}

// Somebody else's container has that name: it is not ours, and nothing was made that could be removed.
bool name_is_taken(const std::string& said) {
    return said.find("container name") != std::string::npos && said.find("already in use") != std::string::npos;
}

class Applying {
  public:
    Applying(const Engine& engine, const ApplyOptions& options, const ApplyEvents& events)
        : engine_(engine), options_(options), events_(events) {}

    host::Result<void> run(const ApplyPlan& plan) {
        auto result = steps(plan);
        if (result) return finish(plan);
        if (!options_.roll_back) return std::unexpected(std::move(result.error()));
        return std::unexpected(undone(std::move(result.error())));
    }

  private:
    host::Result<void> steps(const ApplyPlan& plan) {
        // A network or volume that running containers use is there.
        if (std::any_of(plan.steps.begin(), plan.steps.end(), [](const Step& step) { return step.act != Act::Keep; }))
            for (const Resource& resource : plan.resources) TRY(make(resource));
        if (options_.remove_orphans) TRY(remove_containers(engine_, plan.orphans, events_));
        // A name may be wanted more than once at a time: what must go goes first (a port may move between services).
        for (const Step& step : plan.steps)
            if (step.act == Act::Remove) TRY(remove_containers(engine_, {*step.existing}, events_));
        for (const Step& step : plan.steps)
            if (step.act == Act::Replace) TRY(put_aside(*step.existing));
        std::vector<Desired> watched;
        std::vector<const Step*> wave;  // these need none of each other
        for (const Step& step : plan.steps) {
            if (step.act == Act::Remove) continue;
            const bool waits = options_.one_by_one ||
                               std::any_of(step.desired.depends_on.begin(), step.desired.depends_on.end(),
                                           [&](const Dependency& dependency) {
                                               return dependency.condition != Dependency::Condition::Started ||
                                                      std::any_of(wave.begin(), wave.end(), [&](const Step* other) {
                                                          return other->desired.service == dependency.service;
                                                      });
                                           });
            if (waits) TRY(start(std::exchange(wave, {})));
            for (const Dependency& dependency : step.desired.depends_on)
                for (const Step& other : plan.steps)
                    if (other.act != Act::Remove && other.desired.service == dependency.service)
                        TRY(host::with_context(wait_for_dependency(engine_, other.desired.name, dependency,
                                                                   other.desired.healthcheck, options_.wait),
                                               fmt::format("starting {}", step.desired.name)));
            wave.push_back(&step);
            watched.push_back(step.desired);
            watched.back().settled = step.act == Act::Keep;
        }
        TRY(start(std::move(wave)));
        return wait_until_good(engine_, watched, options_.wait);
    }

    // Two at a time: sshd's MaxSessions may be low.
    host::Result<void> start(std::vector<const Step*> wave) {
        for (const Step* step : wave) {
            if (step->act != Act::Keep) continue;
            TRY(own_name(*step));
            events_(step->desired.name, "Running");
        }
        std::erase_if(wave, [](const Step* step) { return step->act == Act::Keep; });
        std::atomic<std::size_t> next{0};
        std::optional<host::Error> trouble;
        const auto work = [&] {
            for (std::size_t i; (i = next.fetch_add(1)) < wave.size();) {
                auto done = one(*wave[i]);
                const std::lock_guard lock(mutex_);
                if (!done && !trouble) trouble = std::move(done.error());
                if (trouble) return;
            }
        };
        std::vector<std::thread> threads;
        for (std::size_t i = 1; i < std::min<std::size_t>(2, wave.size()); ++i) threads.emplace_back(work);
        work();
        for (std::thread& thread : threads) thread.join();
        if (trouble) return std::unexpected(std::move(*trouble));
        return {};
    }

    host::Result<void> make(const Resource& resource) {
        if (resource.external) {
            TRY_ASSIGN(const bool there, engine_.exists(resource.kind, resource.name));
            if (there) return {};
            return host::failure(ErrorCode::NotFound, "the {} {} is declared external and is not on the target",
                                 resource.kind, resource.name);
        }
        TRY_ASSIGN(const bool made, engine_.make_unless_there(resource.kind, resource.name, resource.words));
        if (!made) return {};
        if (std::string_view(resource.kind) == "network") networks_.push_back(resource.name);
        events_(resource.name, "Created");
        return {};
    }

    host::Result<void> put_aside(const Container& old) {
        const std::string aside = std::string(kAside) + old.name;
        (void)engine_.run({"rm", "--force", aside}, kStartTime, Engine::Check::Nothing);
        aside_.push_back(old);  // first: whoever is interrupted in what follows does not know how far it came
        if (is_up(old)) {
            stopped_.insert(old.id);
            TRY(engine_.run({"stop", old.id}, kStartTime));
        }
        TRY(engine_.run({"rename", old.id, aside}, kStartTime));
        return {};
    }

    // A topo that was killed, or somebody else, may have given it another name.
    host::Result<void> own_name(const Step& step) {
        if (step.existing->name == step.desired.name) return {};
        TRY(engine_.run({"rename", step.existing->id, step.desired.name}, kStartTime));
        return {};
    }

    host::Result<void> one(const Step& step) {
        const Desired& d = step.desired;
        switch (step.act) {
            case Act::Start:
                TRY(own_name(step));
                TRY(engine_.run({step.existing->state == "paused" ? "unpause" : "start", step.existing->id},
                                kStartTime));
                say(d.name, "Started");
                return {};
            case Act::Create:
            case Act::Replace:
                break;
            case Act::Keep:
            case Act::Remove:
                return {};
        }
        {
            const std::lock_guard lock(mutex_);
            made_.push_back(d.name);
        }
        if (needs_api(engine_.kind(), d)) {
            if (auto done = run_through_api(engine_, d); !done) {
                if (name_is_taken(done.error().message)) not_made(d.name);
                done.error().message = engine_.readable(done.error().message);
                done.error().hint = advice_for(done.error().message);
                return std::unexpected(std::move(done.error()).with_context("starting " + d.name));
            }
            return started(step);
        }
        TRY_ASSIGN(const Outcome ran, engine_.run(d.words, kStartTime, Engine::Check::Nothing));
        if (!ran.ok()) {
            const std::string said = engine_.readable(ran.err);
            if (name_is_taken(said)) not_made(d.name);
            return std::unexpected(host::Error(
                ErrorCode::AccessFailed,
                ran.timed_out ? fmt::format("starting {} did not end within {} s", d.name, kStartTime.count() / 1000)
                              : fmt::format("starting {} failed (exit status {}): {}", d.name, ran.status, said),
                advice_for(said)));
        }
        return started(step);
    }

    host::Result<void> started(const Step& step) {
        for (const auto& words : step.desired.afterwards) TRY(engine_.run(words, kStartTime));
        say(step.desired.name, step.act == Act::Create ? "Started" : "Recreated");
        return {};
    }

    void say(const std::string& name, std::string_view what) {
        const std::lock_guard lock(mutex_);
        events_(name, what);
    }

    void not_made(const std::string& name) {
        const std::lock_guard lock(mutex_);
        std::erase(made_, name);
    }

    // All is well: what was kept aside may go, by this deployment or by one that was killed.
    host::Result<void> finish(const ApplyPlan& plan) {
        for (const auto* all : std::initializer_list<const std::vector<Container>*>{&aside_, &plan.leftovers})
            for (const Container& old : *all)
                (void)engine_.run({"rm", "--force", old.id}, kStartTime, Engine::Check::Nothing);
        return {};
    }

    // Under its own name again, and running if it was. What was begun may be going on there: `stop` waits for its end.
    [[nodiscard]] std::pair<bool, bool> put_back(const Container& old) {
        const bool was_up = stopped_.contains(old.id);
        if (was_up) (void)engine_.run({"stop", old.id}, kStartTime, Engine::Check::Nothing);
        const auto asked = engine_.run({"inspect", "--type", "container", "--format", "{{.Name}}", old.id}, kStartTime,
                                       Engine::Check::Nothing);
        std::string name = asked ? std::string(trimmed(asked->out)) : std::string();
        if (name.starts_with('/')) name.erase(0, 1);
        bool named = name == old.name;
        if (!named) {
            const auto renamed = engine_.run({"rename", old.id, old.name}, kStartTime, Engine::Check::Nothing);
            named = renamed && renamed->ok();
        }
        bool started = true;
        if (was_up) {
            const auto ran = engine_.run({"start", old.id}, kStartTime, Engine::Check::Nothing);
            started = ran && ran->ok();
        }
        return {named, started};
    }

    // Back to what ran before; the error tells what could not be undone.
    host::Error undone(host::Error error) {
        const InterruptShield shield;
        std::vector<std::string> trouble, restored;
        for (auto name = made_.rbegin(); name != made_.rend(); ++name) {
            const auto removed = engine_.run({"rm", "--force", *name}, kStartTime, Engine::Check::Nothing);
            if ((!removed || !removed->ok()) && !gone(*name))
                trouble.push_back(fmt::format("{} (new) is still there", *name));
        }
        for (const Container& old : aside_) {
            const auto [named, started] = put_back(old);
            if (named && started) {
                restored.push_back(old.name);
                events_(old.name, "Restored");
            } else {
                trouble.push_back(
                    fmt::format("{} (old) {}", old.name,
                                named ? "did not start again" : "is still called " + std::string(kAside) + old.name));
            }
        }
        // A volume may hold data by now; a network that was made for this and is empty again is of no use.
        for (const std::string& name : networks_) {
            const auto removed = engine_.run({"network", "rm", name}, kStartTime, Engine::Check::Nothing);
            if (!removed || !removed->ok()) trouble.push_back(fmt::format("the network {} (new) is still there", name));
        }
        // Behind what a container printed, which stands in lines of its own.
        const char* next = error.message.find('\n') == std::string::npos ? "; " : "\n";
        if (!restored.empty())
            error.message += fmt::format("{}the old containers run again: {}", next, joined(restored, ", "));
        if (restored.empty() && trouble.empty() && !made_.empty())
            error.message += fmt::format("{}what had been started was removed: {}", next, joined(made_, ", "));
        if (!trouble.empty())
            error.message +=
                fmt::format("{}NOT undone on {}: {}", next,
                            engine_.target().is_local() ? "this machine" : engine_.target().destination().uri(),
                            joined(trouble, ", "));
        return error;
    }

    [[nodiscard]] bool gone(const std::string& name) const {
        const auto asked = engine_.run({"inspect", "--type", "container", name}, kStartTime, Engine::Check::Nothing);
        return asked && asked->status != 0;
    }

    const Engine& engine_;
    const ApplyOptions& options_;
    const ApplyEvents& events_;
    std::mutex mutex_;  // of made_ and events_, while containers are started
    std::vector<Container> aside_;
    std::set<std::string> stopped_;
    std::vector<std::string> made_, networks_;
};

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

ApplyPlan plan_apply(std::vector<Desired> desired, const std::vector<Container>& existing,
                     std::vector<Resource> resources, const ApplyOptions& options) {
    ApplyPlan plan;
    plan.resources = std::move(resources);
    std::set<std::string> services, taken;
    for (const Desired& d : desired) services.insert(d.service);
    for (Desired& d : desired) {
        Step step;
        // One that a killed topo had put aside is the service's only if there is no other.
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
        step.desired = std::move(d);
        plan.steps.push_back(std::move(step));
    }
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

host::Result<void> apply(const Engine& engine, const ApplyPlan& plan, const ApplyOptions& options,
                         const ApplyEvents& events) {
    return Applying(engine, options, events).run(plan);
}

host::Result<void> stop_containers(const Engine& engine, const std::vector<Container>& containers,
                                   const ApplyEvents& events) {
    std::vector<std::string> words = {"stop"}, names;
    for (const Container& c : containers)
        if (is_up(c)) words.push_back(c.id), names.push_back(c.name);
    if (names.empty()) return {};
    TRY(engine.run(words, kStartTime));
    for (const std::string& name : names) events(name, "Stopped");
    return {};
}

host::Result<void> remove_containers(const Engine& engine, const std::vector<Container>& containers,
                                     const ApplyEvents& events) {
    if (containers.empty()) return {};
    TRY(stop_containers(engine, containers, events));
    std::vector<std::string> words = {"rm", "--force"};
    for (const Container& c : containers) words.push_back(c.id);
    TRY(engine.run(words, kStartTime));
    for (const Container& c : containers) events(c.name, "Removed");
    return {};
}

}  // namespace talpa::topo
