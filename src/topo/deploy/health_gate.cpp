#include "topo/deploy/health_gate.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "topo/deploy/listeners.h"
#include "topo/system/text.h"

namespace talpa::topo {
namespace {

using Clock = std::chrono::steady_clock;

struct State {
    std::string state, health;
    int exit_code = 0;
    bool has_check = false;
};

struct Answer {
    std::vector<State> states;
    std::vector<std::uint16_t> listening;  ///< only if it was asked for
};

// "running|healthy|0|true" of each container and the ports that listen, in one session. The ports by the target's own
// tables: an answer over the network would also test firewalls between us.
host::Result<Answer> ask(const Engine& engine, const std::vector<std::string>& names, bool ports) {
    const char* health = engine.kind() == EngineKind::Docker
                             ? "{{if .State.Health}}{{.State.Health.Status}}{{end}}|{{.State.ExitCode}}|{{if "
                               ".Config.Healthcheck}}1{{end}}"
                             : "{{.State.Health.Status}}|{{.State.ExitCode}}|{{if .Config.Healthcheck}}1{{end}}";
    std::vector<std::string> words = {
        std::string(name_of(engine.kind())),       "inspect", "--type", "container", "--format",
        std::string("{{.State.Status}}|") + health};
    words.insert(words.end(), names.begin(), names.end());
    Command command = engine.target().shell(shell_quoted(words) + " || exit 1" +
                                            (ports ? "; cat /proc/net/tcp /proc/net/tcp6 2>/dev/null; true" : ""));
    command.timeout = Milliseconds(30'000);
    TRY_ASSIGN(const Outcome outcome, capture(command));
    if (!outcome.ok())
        return host::failure(outcome.timed_out ? ErrorCode::Timeout : ErrorCode::AccessFailed,
                             "the engine does not say how its containers are: {}",
                             outcome.timed_out ? "timed out" : printable(trimmed(outcome.err), LineEnds::Replace));
    Answer answer;
    for (const std::string& line : lines_of(outcome.out)) {
        const std::vector<std::string> parts = split(line, "|");
        if (parts.size() == 4)
            answer.states.push_back({lower(parts[0]), lower(parts[1]), std::atoi(parts[2].c_str()), !parts[3].empty()});
    }
    if (answer.states.size() != names.size())
        return host::failure(ErrorCode::InvalidArgument, "the engine answered for {} of {} containers",
                             answer.states.size(), names.size());
    if (ports) answer.listening = parse_listening(outcome.out);
    return answer;
}

bool has_tcp_port(const Desired& d) {
    return std::any_of(d.ports.begin(), d.ports.end(),
                       [](const Port& p) { return p.published != 0 && p.protocol == "tcp"; });
}

std::string log_end(const Engine& engine, const std::string& name) {
    const auto logs = engine.run({"logs", "--tail", "5", name}, Milliseconds(10'000), Engine::Check::Nothing);
    if (!logs) return {};
    const std::string text = printable(trimmed(logs->err + logs->out));
    return text.empty() ? "" : "\nits log ends:\n" + text;
}

// Has this container shown that it is good? Podman's own checks are run here.
host::Result<bool> is_good(const Engine& engine, const Desired& d, const State& state,
                           const std::vector<std::uint16_t>& listening, Clock::duration age) {
    if (state.state == "exited" || state.state == "dead" || state.state == "stopped") {
        if (state.exit_code == 0) return true;  // a job that is done
        return host::failure(ErrorCode::InvalidState, "{} ended with status {}{}", d.name, state.exit_code,
                             log_end(engine, d.name));
    }
    if (state.state == "restarting")
        return host::failure(ErrorCode::InvalidState, "{} keeps restarting{}", d.name, log_end(engine, d.name));
    if (state.state != "running") return false;
    const bool checked = state.has_check && !(d.healthcheck && d.healthcheck->disabled);
    if (!checked) {
        if (!d.settled && age < kSettleTime) return false;
        return std::all_of(d.ports.begin(), d.ports.end(), [&](const Port& p) {
            return p.published == 0 || p.protocol != "tcp" ||
                   std::find(listening.begin(), listening.end(), p.published) != listening.end();
        });
    }
    if (state.health == "healthy") return true;
    if (engine.kind() == EngineKind::Podman) {
        TRY_ASSIGN(const Outcome ran,
                   engine.run({"healthcheck", "run", d.name}, Milliseconds(60'000), Engine::Check::Nothing));
        return ran.ok();
    }
    if (state.health == "unhealthy")
        return host::failure(ErrorCode::InvalidState, "{} is unhealthy{}", d.name, log_end(engine, d.name));
    return false;
}

}  // namespace

host::Result<void> wait_until_good(const Engine& engine, const std::vector<Desired>& containers, Milliseconds limit) {
    if (containers.empty() || limit.count() == 0) return {};
    const auto started = Clock::now();
    std::vector<Desired> open = containers;
    for (Milliseconds pause(150);; pause = std::min(pause * 2, Milliseconds(2000))) {
        std::vector<std::string> names;
        for (const Desired& d : open) names.push_back(d.name);
        TRY_ASSIGN(const Answer answer, ask(engine, names, std::any_of(open.begin(), open.end(), has_tcp_port)));
        std::vector<Desired> rest;
        bool only_settling = true;
        for (std::size_t i = 0; i < open.size(); ++i) {
            TRY_ASSIGN(const bool good,
                       is_good(engine, open[i], answer.states[i], answer.listening, Clock::now() - started));
            if (good) continue;
            only_settling = only_settling && !answer.states[i].has_check && answer.states[i].state == "running";
            rest.push_back(open[i]);
        }
        open = std::move(rest);
        if (open.empty()) return {};
        if (interrupted()) return std::unexpected(interruption());
        if (Clock::now() - started > limit)
            return host::failure(ErrorCode::Timeout, "{} did not become healthy within {} s{}", open[0].name,
                                 limit.count() / 1000, log_end(engine, open[0].name));
        // Not past the moment when those that only have to stay up have done so; if there are no others, until then.
        const auto age = std::chrono::duration_cast<Milliseconds>(Clock::now() - started);
        const Milliseconds settling = kSettleTime - age + Milliseconds(5);
        if (settling.count() <= 0)
            std::this_thread::sleep_for(pause);
        else
            std::this_thread::sleep_for(only_settling ? settling : std::min(pause, settling));
    }
}

host::Result<void> wait_for_dependency(const Engine& engine, const std::string& container, const Dependency& dependency,
                                       const std::optional<Healthcheck>& check, Milliseconds limit) {
    if (dependency.condition == Dependency::Condition::Started) return {};
    if (dependency.condition == Dependency::Condition::Healthy) {
        Desired d;
        d.name = container;
        d.healthcheck = check;
        return wait_until_good(engine, {d}, limit.count() == 0 ? Milliseconds(60'000) : limit);
    }
    const auto end =
        Clock::now() + (limit.count() == 0 ? Milliseconds(600'000) : std::max(limit, Milliseconds(600'000)));
    for (;;) {
        TRY_ASSIGN(const Answer answer, ask(engine, {container}, false));
        const std::vector<State>& states = answer.states;
        if (states[0].state == "exited" || states[0].state == "stopped") {
            if (states[0].exit_code == 0) return {};
            return host::failure(ErrorCode::InvalidState, "{} ended with status {}{}", container, states[0].exit_code,
                                 log_end(engine, container));
        }
        if (interrupted()) return std::unexpected(interruption());
        if (Clock::now() > end) return host::failure(ErrorCode::Timeout, "{} has not ended", container);
        std::this_thread::sleep_for(Milliseconds(300));
    }
}

}  // namespace talpa::topo
