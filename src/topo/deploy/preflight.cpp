#include "topo/deploy/preflight.h"

#include <algorithm>
#include <charconv>

#include "topo/deploy/listeners.h"
#include "topo/system/next_command.h"
#include "topo/system/text.h"

namespace talpa::topo {
namespace {

constexpr std::uint64_t kLeastFreeKb = 32 * 1024;  // below that no image of use gets in
constexpr std::uint64_t kScarceFreeKb = 256 * 1024;

std::string on_target(const Destination& destination, const std::string& command) {
    return destination.is_plain_localhost()
               ? command
               : fmt::format("ssh {} {}", shell_quoted(destination.uri()), shell_quoted(command));
}

std::string annotation_of(const Service& service) {
    for (const auto& [name, value] : service.annotations)
        if (name == kRemoteprocAnnotation) return value;
    return {};
}

ProbeAnswer answer_of(const ProbeAnswers& answers, const char* name) {
    const auto it = answers.find(name);
    return it == answers.end() ? ProbeAnswer{} : it->second;
}

// Its ports and its remote processor: a paused one keeps them.
bool holds_what_it_has(const Container& c) {
    return c.state == "running" || c.state == "paused" || c.state == "restarting";
}

class Judge {
  public:
    Judge(const Project& project, const TargetState& state, const TargetFacts& facts,
          const std::vector<Container>& existing, const Destination& destination, const std::vector<Container>& others)
        : project_(project),
          state_(state),
          facts_(facts),
          existing_(existing),
          destination_(destination),
          others_(others) {}

    std::vector<PreflightFinding> run() {
        room();
        ports();
        for (const Service& service : project_.services)
            if (service.is_firmware() && service.scale > 0) firmware(service);
        limits();
        return std::move(findings_);
    }

  private:
    void add(std::string code, bool error, std::string message, std::string fix) {
        findings_.push_back({std::move(code), error, std::move(message), std::move(fix)});
    }

    void room() {
        if (!state_.knows_free || state_.free_kb >= kScarceFreeKb) return;
        add("target.disk.full", state_.free_kb < kLeastFreeKb,
            fmt::format("the target has {} left in {}", human_bytes(state_.free_kb * 1024), facts_.info.root_folder),
            next_command("prune", destination_.uri()));
    }

    [[nodiscard]] bool ours(std::uint16_t port) const {
        return std::any_of(existing_.begin(), existing_.end(), [&](const Container& c) {
            return holds_what_it_has(c) && std::any_of(c.ports.begin(), c.ports.end(),
                                                       [&](const PublishedPort& p) { return p.host_port == port; });
        });
    }

    // Of another project's running container that has it: who, and how it is ended in order.
    template <typename Has>
    [[nodiscard]] std::optional<std::pair<std::string, std::string>> holder(Has&& has) const {
        for (const Container& c : others_)
            if (holds_what_it_has(c) && has(c)) {
                std::string end = fmt::format("{} stop {}", name_of(facts_.kind), shell_quoted(c.name));
                // Podman stops none that is paused.
                if (c.state == "paused")
                    end = fmt::format("{} unpause {} && {}", name_of(facts_.kind), shell_quoted(c.name), end);
                return std::pair(fmt::format("the container {}{}", c.name,
                                             c.working_folder.empty() ? "" : " of " + c.working_folder),
                                 on_target(destination_, end));
            }
        return std::nullopt;
    }

    void ports() {
        for (const Service& service : project_.services) {
            if (service.scale == 0 || !service.publishes_ports()) continue;
            for (const Port& port : service.ports) {
                if (port.published == 0 || port.protocol != "tcp") continue;
                const bool taken = std::find(state_.listening.begin(), state_.listening.end(), port.published) !=
                                   state_.listening.end();
                const auto other = holder([&](const Container& c) {
                    return std::any_of(c.ports.begin(), c.ports.end(),
                                       [&](const PublishedPort& p) { return p.host_port == port.published; });
                });
                if (taken && !ours(port.published) && other)
                    add("target.port.taken", true,
                        fmt::format("port {} of the target, which service \"{}\" wants, is taken by {}", port.published,
                                    service.name, other->first),
                        other->second);
                else if (taken && !ours(port.published))
                    add("target.port.taken", true,
                        fmt::format("port {} of the target, which service \"{}\" wants, is taken by another program",
                                    port.published, service.name),
                        on_target(destination_, fmt::format("ss -ltnp sport = :{}", port.published)));
            }
        }
    }

    void firmware(const Service& service) {
        const std::string name = annotation_of(service);
        if (state_.runtime_path.empty())
            add("target.runtime.missing", true,
                fmt::format("service \"{}\" needs the Remoteproc Runtime, and the target has none", service.name),
                next_command_on_target("install remoteproc-runtime", destination_.uri()));
        const bool docker = facts_.kind == EngineKind::Docker;
        const bool registered = std::find(facts_.info.runtimes.begin(), facts_.info.runtimes.end(), service.runtime) !=
                                facts_.info.runtimes.end();
        const int version = std::atoi(facts_.info.version.c_str());
        if (docker && version < 23 && !registered && !state_.runtime_path.empty())
            add("target.runtime.unregistered", true,
                fmt::format("Docker {} of the target does not know the runtime {}", facts_.info.version,
                            service.runtime),
                fmt::format("add it to /etc/docker/daemon.json of the target: {{\"runtimes\": {{\"{}\": {{\"path\": "
                            "\"{}\"}}}}}}, then restart docker",
                            service.runtime, state_.runtime_path));
        if (docker && version >= 23 && !registered && state_.shim_path.empty())
            add("target.shim.missing", true,
                fmt::format("service \"{}\" needs containerd-shim-remoteproc-v1, and the target has none",
                            service.name),
                next_command_on_target("install remoteproc-runtime", destination_.uri()));
        if (name.empty()) {
            add("project.remoteproc.unnamed", false,
                fmt::format("service \"{}\" names no remote processor", service.name),
                "add annotations: {remoteproc.name: imx-rproc}");
            return;
        }
        const auto found = std::find_if(state_.remote_processors.begin(), state_.remote_processors.end(),
                                        [&](const RemoteProcessor& p) { return p.name == name; });
        if (found == state_.remote_processors.end()) {
            std::string there;
            for (const RemoteProcessor& p : state_.remote_processors) there += (there.empty() ? "" : ", ") + p.name;
            add("target.remoteproc.missing", true,
                fmt::format("the target has no remote processor \"{}\" ({})", name,
                            there.empty() ? "it has none" : "it has " + there),
                there.empty() ? next_command_on_target("doctor", destination_.uri())
                              : "correct the annotation remoteproc.name");
            return;
        }
        const bool mine = std::any_of(existing_.begin(), existing_.end(), [&](const Container& c) {
            return holds_what_it_has(c) && c.remote_processor == name;
        });
        const auto other = holder([&](const Container& c) { return c.remote_processor == name; });
        if (found->state == "running" && !mine && other)
            add("target.remoteproc.busy", true,
                fmt::format("the remote processor \"{}\" is used by {}", name, other->first), other->second);
        else if (found->state == "running" && !mine)
            add("target.remoteproc.busy", true, fmt::format("the remote processor \"{}\" runs other firmware", name),
                on_target(destination_, fmt::format("echo stop > {}/state", found->folder)));
        if (found->state == "crashed")
            add("target.remoteproc.crashed", true, fmt::format("the remote processor \"{}\" has crashed", name),
                on_target(destination_, fmt::format("echo stop > {}/state", found->folder)));
    }

    void limits() {
        if (facts_.kind == EngineKind::Docker && std::atoi(facts_.info.version.c_str()) < 24)
            for (const Service& service : project_.services)
                if (!service.annotations.empty())
                    add("target.engine.annotations", false,
                        fmt::format("Docker {} of the target knows no annotations (24 does): those of service \"{}\" "
                                    "travel as labels, the remote processor in REMOTEPROC_NAME",
                                    facts_.info.version, service.name),
                        "");
    }

    const Project& project_;
    const TargetState& state_;
    const TargetFacts& facts_;
    const std::vector<Container>& existing_;
    const Destination& destination_;
    const std::vector<Container>& others_;
    std::vector<PreflightFinding> findings_;
};

}  // namespace

std::vector<ProbeCheck> preflight_checks(const EngineInfo& engine) {
    return {
        {"machine", "uname -m"},
        {"tcp", "cat /proc/net/tcp /proc/net/tcp6 2>/dev/null"},
        {"remoteproc",
         "for d in /sys/class/remoteproc/remoteproc*; do [ -f \"$d/name\" ] && echo \"$(cat \"$d/name\")|$(cat "
         "\"$d/state\" 2>/dev/null)|$d\"; done; true"},
        {"runtime", "command -v remoteproc-runtime"},
        {"shim", "command -v containerd-shim-remoteproc-v1"},
        {"room", "d=" + shell_quoted(engine.root_folder.empty() ? "/var/lib" : engine.root_folder) +
                     "; while [ ! -d \"$d\" ]; do d=$(dirname \"$d\"); done; df -Pk \"$d\""},
    };
}

TargetState parse_target_state(const ProbeAnswers& answers) {
    TargetState state;
    state.machine = trimmed(answer_of(answers, "machine").out);
    state.listening = parse_listening(answer_of(answers, "tcp").out);
    for (const std::string& line : lines_of(answer_of(answers, "remoteproc").out)) {
        const std::vector<std::string> parts = split(line, "|");
        if (parts.size() == 3 && !parts[0].empty()) state.remote_processors.push_back({parts[0], parts[1], parts[2]});
    }
    if (const ProbeAnswer runtime = answer_of(answers, "runtime"); runtime.ok())
        state.runtime_path = trimmed(runtime.out);
    if (const ProbeAnswer shim = answer_of(answers, "shim"); shim.ok()) state.shim_path = trimmed(shim.out);
    const std::vector<std::string> rows = lines_of(answer_of(answers, "room").out);
    if (rows.size() >= 2) {
        std::vector<std::string> fields;
        for (const std::string& field : split(rows.back(), " "))
            if (!field.empty()) fields.push_back(field);
        if (fields.size() >= 4) {
            const auto [end, error] =
                std::from_chars(fields[3].data(), fields[3].data() + fields[3].size(), state.free_kb);
            state.knows_free = error == std::errc();
        }
    }
    return state;
}

std::vector<PreflightFinding> judge(const Project& project, const TargetState& state, const TargetFacts& facts,
                                    const std::vector<Container>& existing, const Destination& destination,
                                    const std::vector<Container>& others) {
    return Judge(project, state, facts, existing, destination, others).run();
}

bool is_taken(const PreflightFinding& finding) {
    return finding.code == "target.port.taken" || finding.code == "target.remoteproc.busy";
}

}  // namespace talpa::topo
