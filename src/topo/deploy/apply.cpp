#include "topo/deploy/apply.h"

#include <algorithm>
#include <atomic>
#include <mutex>
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

// Somebody else's container has that name: it is not ours, and nothing was made that could be removed.
bool name_is_taken(const std::string& said) {
    return said.find("container name") != std::string::npos && said.find("already in use") != std::string::npos;
}

bool gone(const Engine& engine, const std::string& name) {
    const auto asked = engine.run({"inspect", "--type", "container", name}, kStartTime, Engine::Check::Nothing);
    return asked && asked->status != 0;
}

// One after the other, and again those that others had to go before (Podman). What is left, and what was said of it.
std::vector<std::pair<Container, std::string>> remove_all(const Engine& engine, std::vector<Container> containers) {
    for (;;) {
        std::vector<std::pair<Container, std::string>> left;
        for (const Container& c : containers) {
            const auto ran = engine.run({"rm", "--force", c.id}, kStartTime, Engine::Check::Nothing);
            if ((ran && ran->ok()) || gone(engine, c.id)) continue;
            left.emplace_back(c, ran ? engine.readable(ran->err) : ran.error().message);
        }
        if (left.empty() || left.size() == containers.size()) return left;
        containers.clear();
        for (const auto& [container, said] : left) containers.push_back(container);
    }
}

class Applying {
  public:
    Applying(const Engine& engine, const ApplyOptions& options, const ApplyEvents& events)
        : engine_(engine), options_(options), events_(events) {}

    host::Result<void> run(const ApplyPlan& plan, bool& as_before) {
        as_before = false;
        auto result = steps(plan);
        if (result) {
            finish(plan);
            return {};
        }
        if (!options_.roll_back) return std::unexpected(std::move(result.error()));
        return std::unexpected(undone(std::move(result.error()), as_before));
    }

  private:
    // A container that makes room, and what it is to be again if this ends badly.
    struct Aside {
        Container old;
        std::string name;
        bool up = false;
    };

    host::Result<void> steps(const ApplyPlan& plan) {
        // A network or volume that running containers use is there.
        if (std::any_of(plan.steps.begin(), plan.steps.end(), [](const Step& step) { return step.act != Act::Keep; }))
            for (const Resource& resource : plan.resources) TRY(make(resource));
        if (options_.remove_orphans) TRY(remove_for_good(plan.orphans));
        // A name may be wanted more than once at a time: what must go goes first (a port may move between services).
        for (const Step& step : plan.steps)
            if (step.act == Act::Remove) TRY(remove_for_good({*step.existing}));
        for (const Container& old : plan.leftovers) TRY(quiet(old, plan));
        for (auto step = plan.steps.rbegin(); step != plan.steps.rend(); ++step) TRY(make_room(*step));
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

    host::Result<void> remove_for_good(const std::vector<Container>& containers) {
        if (!containers.empty()) removed_ = true;
        return remove_containers(engine_, containers, events_);
    }

    // Remembered before it is stopped: whoever is interrupted in what follows does not know how far it came.
    host::Result<void> stop(const Container& old, std::string name, bool up) {
        aside_.push_back({old, std::move(name), up});
        return stop_containers(engine_, {old}, [](const std::string&, std::string_view) {});
    }

    // What lies there from earlier may have been started at a boot (Docker does that with `restart: always`), and have
    // the port. Beside the container of its service it does not come back.
    host::Result<void> quiet(const Container& old, const ApplyPlan& plan) {
        if (!is_up(old)) return {};
        return stop(old, old.name, std::none_of(plan.steps.begin(), plan.steps.end(), [&](const Step& step) {
                        return step.act != Act::Remove && step.desired.service == old.service;
                    }));
    }

    // The last to be started goes first: it may need another's network.
    host::Result<void> make_room(const Step& step) {
        const bool replace = step.act == Act::Replace;
        if (step.comeback) {
            // What is there now has never been seen to be good: it goes, and does not come back.
            TRY(stop(*step.comeback, step.desired.name, true));
            if (replace) return remove_containers(engine_, {*step.existing}, [](const std::string&, auto) {});
            if (step.existing) unproven_.push_back(*step.existing);
            return {};
        }
        if (!replace) return {};
        const Container& old = *step.existing;
        // Who put it aside had stopped it.
        if (is_aside(old)) return stop(old, step.desired.name, true);
        const std::string aside = aside_name(old.name);
        (void)engine_.run({"rm", "--force", aside}, kStartTime, Engine::Check::Nothing);
        TRY(stop(old, old.name, is_up(old)));
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
    void finish(const ApplyPlan& plan) {
        std::vector<Container> old;
        for (const Aside& one : aside_) old.push_back(one.old);
        for (const Container& one : plan.leftovers)
            if (std::none_of(old.begin(), old.end(), [&](const Container& other) { return other.id == one.id; }))
                old.push_back(one);
        const auto left = remove_all(engine_, old);
        if (left.empty()) return;
        std::vector<std::string> names;
        for (const auto& [container, said] : left)
            names.push_back(is_aside(container) ? container.name : aside_name(container.name));
        warn(fmt::format("of the deployment before, {} could not be removed ({}); to remove it: {}",
                         joined(names, ", "), left.front().second,
                         next_command("prune", engine_.target().destination().uri())));
    }

    struct Back {
        bool named = false, as_it_was = false;
    };
    // Under its own name again, and running if it was. What was begun may be going on there: `stop` waits for its end.
    [[nodiscard]] Back put_back(const Aside& one) const {
        const std::string& id = one.old.id;
        if (one.up) (void)engine_.run({"stop", id}, kStartTime, Engine::Check::Nothing);
        const auto asked =
            engine_.run({"inspect", "--type", "container", "--format", "{{.Name}} {{.State.Status}}", id}, kStartTime,
                        Engine::Check::Nothing);
        std::string name = asked ? std::string(trimmed(asked->out)) : std::string(), state;
        if (const std::size_t blank = name.find(' '); blank != std::string::npos) {
            state = lower(name.substr(blank + 1));
            name.resize(blank);
        }
        if (name.starts_with('/')) name.erase(0, 1);
        Back back{.named = name == one.name, .as_it_was = true};
        if (!back.named) {
            const auto renamed = engine_.run({"rename", id, one.name}, kStartTime, Engine::Check::Nothing);
            back.named = renamed && renamed->ok();
        }
        const bool paused = one.old.state == "paused";
        if (!one.up || (paused && state == "paused")) return back;
        for (const char* verb : {"start", "pause"}) {
            if (std::string_view(verb) == "pause" && !paused) continue;
            const auto ran = engine_.run({verb, id}, kStartTime, Engine::Check::Nothing);
            back.as_it_was = back.as_it_was && ran && ran->ok();
        }
        return back;
    }

    // Back to what ran before; the error tells what could not be undone.
    host::Error undone(host::Error error, bool& as_before) {
        const InterruptShield shield;
        std::vector<std::string> trouble, running, others;
        for (auto name = made_.rbegin(); name != made_.rend(); ++name) {
            const auto removed = engine_.run({"rm", "--force", *name}, kStartTime, Engine::Check::Nothing);
            if ((!removed || !removed->ok()) && !gone(engine_, *name))
                trouble.push_back(fmt::format("{} (new) is still there", *name));
        }
        for (const auto& [container, said] : remove_all(engine_, unproven_))
            trouble.push_back(
                fmt::format("{} (of a deployment that was cut) is still there: {}", container.name, said));
        for (auto one = aside_.rbegin(); one != aside_.rend(); ++one) {
            const Back back = put_back(*one);
            if (!back.named) {
                trouble.push_back(fmt::format("{} (old) is still called {}", one->name,
                                              is_aside(one->old) ? one->old.name : aside_name(one->old.name)));
            } else if (!back.as_it_was) {
                trouble.push_back(fmt::format("{} (old) did not start again", one->name));
            } else {
                const bool paused = one->old.state == "paused";
                (one->up && !paused ? running : others).push_back(one->name + (paused ? " (paused)" : ""));
                events_(one->name, "Restored");
            }
        }
        // A volume may hold data by now; a network that was made for this and is empty again is of no use.
        for (const std::string& name : networks_) {
            const auto removed = engine_.run({"network", "rm", name}, kStartTime, Engine::Check::Nothing);
            if (!removed || !removed->ok()) trouble.push_back(fmt::format("the network {} (new) is still there", name));
        }
        // Behind what a container printed, which stands in lines of its own.
        const char* next = error.message.find('\n') == std::string::npos ? "; " : "\n";
        if (!running.empty())
            error.message += fmt::format("{}the old containers run again: {}", next, joined(running, ", "));
        if (!others.empty())
            error.message += fmt::format("{}put back, not running, as before: {}", next, joined(others, ", "));
        if (aside_.empty() && trouble.empty() && !made_.empty())
            error.message += fmt::format("{}what had been started was removed: {}", next, joined(made_, ", "));
        if (!trouble.empty())
            error.message +=
                fmt::format("{}NOT undone on {}: {}", next,
                            engine_.target().is_local() ? "this machine" : engine_.target().destination().uri(),
                            joined(trouble, ", "));
        as_before = trouble.empty() && !removed_;
        return error;
    }

    const Engine& engine_;
    const ApplyOptions& options_;
    const ApplyEvents& events_;
    std::mutex mutex_;  // of made_ and events_, while containers are started
    std::vector<Aside> aside_;
    std::vector<Container> unproven_;  // in the place of one that comes back
    bool removed_ = false;             // something that does not come back
    std::vector<std::string> made_, networks_;
};

}  // namespace

host::Result<void> apply(const Engine& engine, const ApplyPlan& plan, const ApplyOptions& options,
                         const ApplyEvents& events, bool& as_before) {
    return Applying(engine, options, events).run(plan, as_before);
}

host::Result<void> stop_containers(const Engine& engine, const std::vector<Container>& containers,
                                   const ApplyEvents& events) {
    std::vector<std::string> words = {"stop"}, names;
    for (const Container& c : containers)
        if (is_up(c)) words.push_back(c.id), names.push_back(c.name);
    if (names.empty()) return {};
    // Podman stops none that is paused.
    std::vector<std::string> unpause = {"unpause"};
    for (const Container& c : containers)
        if (c.state == "paused") unpause.push_back(c.id);
    if (unpause.size() > 1) TRY(engine.run(unpause, kStartTime));
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
    TRY_ASSIGN(const Outcome ran, engine.run(words, kStartTime, Engine::Check::Nothing));
    // Podman refuses one while another uses its network.
    if (!ran.ok())
        if (const auto left = remove_all(engine, containers); !left.empty())
            return host::failure(ErrorCode::AccessFailed, "{} cannot be removed: {}", left[0].first.name,
                                 left[0].second);
    for (const Container& c : containers) events(c.name, "Removed");
    return {};
}

}  // namespace talpa::topo
