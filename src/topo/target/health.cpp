#include "topo/target/health.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>

#include "base/host/json.h"
#include "topo/system/text.h"
#include "topo/target/docker_daemon.h"
#include "topo/target/ssh_error.h"

namespace talpa::topo {
namespace {

using host::Json;

std::string not_found(std::string_view program, bool local) {
    return fmt::format("\"{}\" not found {}", program, local ? "in $PATH" : "on remote target's $PATH");
}

// --- this machine ---

Check check_topo(const HealthOptions& options) {
    if (!options.outdated) return {"Topo", Status::Ok, "topo", {}};
    return {
        "Topo", Status::Info,
        fmt::format("out of date - current: {}, latest version: {}", options.outdated->first, options.outdated->second),
        Fix{"Upgrade Topo", "topo upgrade"}};
}

Check check_openssh(const HealthOptions&) {
    if (!find_program("ssh")) return {"OpenSSH", Status::Error, not_found("ssh", true), {}};
    const auto ran = capture({.argv = {"ssh", "-V"}, .timeout = Milliseconds(5000)});
    if (ran && ran->err.find("OpenSSH_") != std::string::npos) return {"OpenSSH", Status::Ok, "ssh", {}};
    return {"OpenSSH", Status::Error, "ssh is not OpenSSH",
            Fix{"Install OpenSSH and ensure its ssh executable is first on PATH", ""}};
}

// Podman stands in for a Docker that is installed and stopped; what runs under Docker is not seen then.
Check stopped_docker(const Destination& destination) {
    return {"Container Engine", Status::Warning, "podman; docker is installed but does not answer",
            Fix{"Start Docker, or choose Podman with --engine podman", docker_start_command(destination)}};
}

Check check_engine(const HealthOptions&) {
    std::string trouble;
    for (const char* engine : {"docker", "podman"}) {
        if (!find_program(engine)) continue;
        const auto ran = capture({.argv = {engine, "info"}, .timeout = Milliseconds(10'000)});
        if (ran && ran->ok()) {
            if (trouble.empty()) return {"Container Engine", Status::Ok, engine, {}};
            const auto daemon =
                capture({.argv = {"/bin/sh", "-c", kDockerDaemonScript}, .timeout = Milliseconds(5000)});
            if (daemon && daemon->ok()) return stopped_docker({.user = {}, .host = "localhost", .port = {}});
            return {"Container Engine", Status::Ok, engine, {}};
        }
        if (trouble.empty()) trouble = !ran ? ran.error().message : ran->timed_out ? "timed out" : one_line(ran->err);
        if (trouble.empty()) trouble = fmt::format("`{} info` failed", engine);
    }
    if (trouble.empty())
        return {"Container Engine", Status::Error, not_found("docker", true),
                Fix{"Install Docker or Podman", "apt-get install podman"}};
    return {"Container Engine", Status::Error, trouble, Fix{"Ensure current user can run docker commands", ""}};
}

// Without the plugin topo applies projects itself, so its absence is no error as it is in the original.
std::optional<Check> check_compose() {
    if (!find_program("docker")) return std::nullopt;
    const auto ran =
        capture({.argv = {"docker", "compose", "version", "--format", "json"}, .timeout = Milliseconds(5000)});
    if (!ran || !ran->ok())
        return Check{"Docker Compose", Status::Info, "not installed: topo applies projects itself",
                     Fix{"Ensure Docker Compose is installed as a plugin for Docker", ""}};
    const Json answer = Json::parse(ran->out, nullptr, false);
    std::string version;
    if (answer.is_object() && answer.contains("version") && answer["version"].is_string())
        version = answer["version"].get<std::string>();
    if (version_at_least(version, kLeastCompose)) return Check{"Docker Compose", Status::Ok, "docker-compose", {}};
    return Check{"Docker Compose", Status::Info,
                 fmt::format("version {} is too old: topo applies projects itself", one_line(version)),
                 Fix{fmt::format("Upgrade Docker Compose to version {} or later", kLeastCompose), ""}};
}

// --- the target ---

struct Row {
    const char *name, *value, *answer;
    Status severity;
    enum class When { Always, WithRemoteproc } when;
};

constexpr Row kTargetRows[] = {
    {"Remoteproc Runtime", "remoteproc-runtime", "runtime", Status::Warning, Row::When::WithRemoteproc},
    {"Remoteproc Shim", "containerd-shim-remoteproc-v1", "shim", Status::Warning, Row::When::WithRemoteproc},
    {"Hardware Info", "lscpu", "lscpu", Status::Error, Row::When::Always},
};

ProbeAnswer answer_of(const ProbeAnswers& answers, const char* name) {
    const auto it = answers.find(name);
    return it == answers.end() ? ProbeAnswer{.status = 124, .out = {}} : it->second;
}

Check engine_of(const ProbeAnswers& answers, const Destination& destination) {
    constexpr const char* kName = "Container Engine";
    std::string trouble;
    bool late = false;
    for (const char* engine : {"docker", "podman"}) {
        const ProbeAnswer path = answer_of(answers, engine);
        late = late || path.timed_out();
        if (!path.ok()) continue;
        const ProbeAnswer info =
            answer_of(answers, engine == std::string_view("docker") ? "docker-info" : "podman-info");
        if (info.ok()) {
            const bool stopped = engine == std::string_view("podman") && answer_of(answers, "docker").ok() &&
                                 answer_of(answers, "dockerd").ok();
            return stopped ? stopped_docker(destination) : Check{kName, Status::Ok, engine, {}};
        }
        late = late || info.timed_out();
        if (trouble.empty()) trouble = info.timed_out() ? "timed out" : one_line(info.out.substr(0, 500));
        if (trouble.empty()) trouble = fmt::format("`{} info` failed", engine);
    }
    if (!trouble.empty())
        return {kName, Status::Error, trouble, Fix{"Ensure current user can run docker commands", ""}};
    if (late) return {kName, Status::Error, "timed out", {}};
    const bool local = destination.is_plain_localhost();
    const std::string install = "apt-get install podman";
    return {kName, Status::Error, not_found("docker", local),
            Fix{"Install Docker or Podman",
                local || destination.board ? install
                                           : fmt::format("ssh {} '{}'", shell_quoted(destination.uri()), install)}};
}

bool has_engine(const ProbeAnswers& answers) {
    return answer_of(answers, "docker").ok() || answer_of(answers, "podman").ok();
}

SshFault fault_of(const host::Error& error) {
    if (error.code == ErrorCode::Timeout) return SshFault::TimedOut;
    const std::size_t quoted = error.message.find(" | stderr: ");
    return classify_ssh(quoted == std::string::npos ? error.message : error.message.substr(quoted));
}

void no_connection(const host::Error& error, TargetHealth& health) {
    const SshFault fault = fault_of(error);
    health.ssh_fault = fault;
    Check& check = health.connectivity;
    check.status = Status::Error;
    switch (fault) {
        case SshFault::HostKeyUnknown:
            check.value = "ssh host key is unknown";
            break;
        case SshFault::HostKeyChanged:
            check.value = "ssh host key has changed";
            break;
        case SshFault::AuthenticationFailed:
            check.value = "ssh authentication failed";
            break;
        case SshFault::TooManyAuthenticationFailures:
            check.value = "ssh too many authentication failures";
            break;
        case SshFault::TimedOut:
            check.value = "timed out";
            break;
        case SshFault::ConnectionFailed:
        case SshFault::ConnectionLost:
        case SshFault::Other:
            check.value = one_line(error.message);
            break;
    }
    const SshFix fix = fix_for(fault, health.destination);
    if (!fix.description.empty()) check.fix = Fix{fix.description, fix.command};
}

// --- output ---

const char* icon(Status status) {
    switch (status) {
        case Status::Ok:
            return "✅";
        case Status::Warning:
            return "⚠️";
        case Status::Info:
            return "ℹ️";
        case Status::Error:
            break;
    }
    return "❌";
}

const char* word(Status status) {
    switch (status) {
        case Status::Ok:
            return "ok";
        case Status::Warning:
            return "warning";
        case Status::Info:
            return "info";
        case Status::Error:
            break;
    }
    return "error";
}

std::string row(const Check& check) {
    std::string out = fmt::format("{}: {}", check.name, icon(check.status));
    if (!check.value.empty()) out += fmt::format(" ({})", check.value);
    out += "\n";
    if (check.fix) {
        out += fmt::format("  Fix:\n    {}\n", check.fix->description);
        if (!check.fix->command.empty()) out += fmt::format("  Command:\n    {}\n", check.fix->command);
    }
    return out;
}

Json json_of(const Check& check) {
    Json one = {{"name", check.name}, {"status", word(check.status)}, {"value", check.value}};
    if (check.fix) {
        one["fix"] = {{"description", check.fix->description}};
        if (!check.fix->command.empty()) one["fix"]["command"] = check.fix->command;
    }
    return one;
}

}  // namespace

bool Health::has_errors() const {
    const auto bad = [](const Check& c) { return c.status == Status::Error; };
    if (std::any_of(host.begin(), host.end(), bad)) return true;
    return target && (bad(target->connectivity) || bad(target->driver) ||
                      std::any_of(target->dependencies.begin(), target->dependencies.end(), bad));
}

bool version_at_least(std::string_view version, std::string_view least) {
    const auto numbers = [](std::string_view text) -> std::optional<std::array<int, 3>> {
        if (text.starts_with('v')) text.remove_prefix(1);
        std::array<int, 3> n{};
        for (std::size_t i = 0; i < 3; ++i) {
            const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n[i]);
            if (error != std::errc()) return std::nullopt;
            text.remove_prefix(static_cast<std::size_t>(end - text.data()));
            if (i < 2 && !text.starts_with('.')) return std::nullopt;
            if (i < 2) text.remove_prefix(1);
        }
        return n;
    };
    const auto have = numbers(version), want = numbers(least);
    return have && want && *have >= *want;
}

std::vector<Check> check_host(const HealthOptions& options) {
    std::vector<Check> checks = {check_topo(options), check_openssh(options), check_engine(options)};
    if (auto compose = check_compose()) checks.push_back(std::move(*compose));
    return checks;
}

std::vector<ProbeCheck> health_checks() {
    return {
        {"remoteproc", "cat /sys/class/remoteproc/*/name 2>/dev/null"},
        {"docker", "command -v docker"},
        {"dockerd", kDockerDaemonScript},
        {"podman", "command -v podman"},
        {"runtime", "command -v remoteproc-runtime"},
        {"shim", "command -v containerd-shim-remoteproc-v1"},
        {"lscpu", "command -v lscpu"},
        // Last, as they may hang; Podman only where Docker does not do: it takes its time on a small board.
        {"docker-info", "command -v docker >/dev/null && docker info"},
        {"podman-info", "[ \"$TOPO_STATUS_docker_info\" != 0 ] && command -v podman >/dev/null && podman info"},
    };
}

void judge_target(const ProbeAnswers& answers, TargetHealth& health) {
    const bool local = health.destination.is_plain_localhost();
    const ProbeAnswer remote = answer_of(answers, "remoteproc");
    std::vector<std::string> names;
    if (remote.ok()) names = parse_remoteprocs(remote.out);
    health.dependencies = {engine_of(answers, health.destination)};
    for (const Row& r : kTargetRows) {
        if (r.when == Row::When::WithRemoteproc && (names.empty() || !has_engine(answers))) continue;
        const ProbeAnswer answer = answer_of(answers, r.answer);
        Check check{r.name, Status::Ok, r.value, {}};
        if (answer.timed_out()) {
            check.status = Status::Error;
            check.value = "timed out";
        } else if (!answer.ok()) {
            check.status = r.severity;
            check.value = not_found(r.value, local);
            if (r.when == Row::When::WithRemoteproc)
                check.fix = Fix{"Install the Remoteproc Runtime",
                                "topo install remoteproc-runtime --target " + shell_quoted(health.destination.uri())};
        }
        health.dependencies.push_back(std::move(check));
    }
    health.driver = {kDriverCheck, Status::Ok, one_line(joined(names, ", ")), {}};
    if (remote.timed_out()) {
        health.driver.status = Status::Error;
        health.driver.value = "timed out";
    } else if (names.empty()) {
        health.driver.status = Status::Info;
        health.driver.value = "no remoteproc devices found";
    }
}

TargetHealth check_target(const Destination& destination, const HealthOptions& options) {
    const auto started = std::chrono::steady_clock::now();
    TargetHealth health;
    health.destination = destination;
    health.connectivity = {"Connectivity", Status::Ok, {}, {}};
    health.driver = {kDriverCheck, Status::Info, "no remoteproc devices found", {}};
    const Target target(
        destination, {.timeout = options.timeout, .batch = true, .accept_new_host_keys = options.accept_new_host_keys});
    if (const auto connected = target.connect(); !connected) {
        no_connection(connected.error(), health);
        return health;
    }
    // What is left of the time is that of all checks, in one login shell; those that may hang come last, and leave a
    // part of it to what follows them.
    std::vector<ProbeCheck> checks = health_checks();
    Milliseconds limit(0);
    if (options.timeout.count() > 0) {
        const auto gone = std::chrono::duration_cast<Milliseconds>(std::chrono::steady_clock::now() - started);
        limit = std::max(Milliseconds(1000), options.timeout - gone);
        for (ProbeCheck& check : checks)
            check.limit_s = static_cast<int>(std::max<std::int64_t>(1, limit.count() * 3 / 5 / 1000));
    }
    const auto answers = probe(target, checks, limit);
    if (!answers) {
        no_connection(answers.error(), health);
        return health;
    }
    judge_target(*answers, health);
    return health;
}

std::string health_plain(const Health& health) {
    std::string out = "Host\n----\n";
    for (const Check& check : health.host) out += row(check);
    out += "\nTarget\n------\n";
    if (!health.target) return out + "ℹ️ provide --target or set TOPO_TARGET to check target health\n";
    const TargetHealth& t = *health.target;
    out += fmt::format("Destination: {}\n", t.destination.uri());
    if (!t.destination.is_plain_localhost()) out += row(t.connectivity);
    if (t.connectivity.status != Status::Ok) return out;
    for (const Check& check : t.dependencies) out += row(check);
    return out + row(t.driver);
}

std::string health_json(const Health& health) {
    Json document;
    document["host"]["dependencies"] = Json::array();
    for (const Check& check : health.host) document["host"]["dependencies"].push_back(json_of(check));
    if (health.target) {
        Json& target = document["target"];
        target["destination"] = health.target->destination.uri();
        target["isLocalhost"] = health.target->destination.is_plain_localhost();
        target["connectivity"] = json_of(health.target->connectivity);
        target["dependencies"] = Json::array();
        for (const Check& check : health.target->dependencies) target["dependencies"].push_back(json_of(check));
        target["processingDomainDriver"] = json_of(health.target->driver);
    }
    return document.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace talpa::topo
