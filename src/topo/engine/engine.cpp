#include "topo/engine/engine.h"

#include <mutex>
#include <set>

#include "topo/system/log.h"
#include "topo/system/text.h"
#include "topo/target/docker_daemon.h"
#include "topo/target/ssh_error.h"

namespace talpa::topo {
namespace {

constexpr Milliseconds kQuestion(30'000);
constexpr int kNoEngine = 3;  // exit status of the script of find()
constexpr std::size_t kIdDigits = 64;

}  // namespace

std::string_view name_of(EngineKind kind) {
    return kind == EngineKind::Docker ? "docker" : "podman";
}

std::string Container::processing_domain() const {
    return runtime.find("remoteproc") != std::string::npos && !trimmed(remote_processor).empty()
               ? std::string(trimmed(remote_processor))
               : "Linux Host";
}

std::string Image::platform() const {
    return os + "/" + architecture + (variant.empty() ? "" : "/" + variant);
}

std::string platform_architecture(std::string_view architecture) {
    constexpr std::pair<const char*, const char*> kNames[] = {
        {"aarch64", "arm64"}, {"x86_64", "amd64"}, {"armv7l", "arm"}, {"armhf", "arm"}, {"i686", "386"}};
    for (const auto& [from, to] : kNames)
        if (architecture == from) return to;
    return std::string(architecture);
}

std::string short_image_name(std::string_view name) {
    for (const std::string_view start : {"localhost/", "docker.io/library/", "docker.io/"})
        if (name.starts_with(start)) return std::string(name.substr(start.size()));
    return std::string(name);
}

std::vector<std::string> container_ids(std::string_view text) {
    constexpr std::string_view kHex = "0123456789abcdef";
    std::vector<std::string> ids;
    for (std::size_t at = 0; (at = text.find_first_of(kHex, at)) != std::string_view::npos;) {
        const std::size_t end = std::min(text.find_first_not_of(kHex, at), text.size());
        const bool digest = at > 0 && text[at - 1] == ':' && text.substr(0, at).ends_with("sha256:");
        if (end - at == kIdDigits && !digest) ids.emplace_back(text.substr(at, kIdDigits));
        at = end;
    }
    return ids;
}

std::string with_names(std::string text, const std::map<std::string, std::string>& names) {
    for (const std::string& id : container_ids(text)) {
        const auto name = names.find(id);
        text.replace(text.find(id), id.size(), name == names.end() ? id.substr(0, 12) : name->second);
    }
    return text;
}

host::Result<Engine> Engine::find(const Target& target) {
    std::string tried, docker_said;
    bool stopped = false;
    // Without a login shell, as every later call: an engine that only a profile puts on PATH is not found here either.
    // What it says of itself is the answer of info(). With a format, Docker's client ends well without an engine too.
    const std::string script = fmt::format(
        "for e in docker podman; do command -v $e >/dev/null 2>&1 || {{ echo \"$e: not installed\"; continue; }}; "
        "f=json; [ $e = podman ] || f='{{{{json .}}}}'; "
        "m=$($e info --format \"$f\" 2>/dev/null </dev/null) && case $m in *'\"ServerErrors\":['*) false;; esac && "
        "{{ echo \"ok $e\"; printf '%s\\n' \"$m\"; exit 0; }}; "
        "m=$($e info 2>&1 >/dev/null </dev/null) || true; [ $e = docker ] && ({}) >/dev/null && echo 'docker stopped'; "
        "echo \"$e: $m\"; done; exit {}",
        kDockerDaemonScript, kNoEngine);
    Command command = target.shell(script);
    command.timeout = kQuestion;
    TRY_ASSIGN(const Outcome outcome, capture(command));
    const std::string where = target.is_local() ? "this machine" : target.destination().uri();
    for (const std::string& line : lines_of(outcome.out)) {
        if (line == "ok docker" || line == "ok podman") {
            const bool docker = line == "ok docker";
            Engine engine(docker ? EngineKind::Docker : EngineKind::Podman, target);
            if (!docker && stopped)
                engine.docker_stopped_ = fmt::format(
                    "Docker is installed on {} but does not answer, so Podman is used ({}). To start Docker: {}; to "
                    "choose: --engine docker or --engine podman",
                    where, docker_said, docker_start_command(target.destination()));
            engine.info_json_ = outcome.out.substr(outcome.out.find(line) + line.size());
            return engine;
        }
        if (line == "docker stopped") {
            stopped = true;
            continue;
        }
        if (line.starts_with("docker: ") && docker_said.empty())
            docker_said = printable(line, LineEnds::Replace).substr(0, 300);
        if (!line.empty() && tried.size() < 600)
            tried += (tried.empty() ? "" : "; ") + printable(line, LineEnds::Replace);
    }
    if (outcome.timed_out)
        return host::failure(ErrorCode::Timeout, "the container engine of {} does not answer", where);
    // Neither found nor missed: the question was not asked.
    if (!target.is_local() && outcome.status == 255 && tried.empty())
        return std::unexpected(ssh_error(target.destination(), outcome.err, outcome.status, false));
    if (outcome.status != kNoEngine) {
        const std::string said = one_line((outcome.err.empty() ? outcome.out : outcome.err).substr(0, 500));
        return std::unexpected(
            host::Error(ErrorCode::AccessFailed,
                        fmt::format("{} was not asked for its container engine: it did not run the question (exit "
                                    "status {}){}",
                                    where, outcome.status, said.empty() ? "" : " | it said: " + said),
                        "the shell of ssh commands there must be able to run /bin/sh (see its .bashrc or .zshenv)"));
    }
    return std::unexpected(
        host::Error(ErrorCode::NotFound, fmt::format("no container engine works on {}: {}", where, tried),
                    stopped ? docker_start_command(target.destination())
                            : "start it (systemctl start docker), or install one: apt-get install podman"));
}

void Engine::nothing_found() const {
    static std::mutex mutex;
    static std::set<std::string> told;
    const std::lock_guard lock(mutex);
    if (!docker_stopped_.empty() && told.insert(docker_stopped_).second) warn(docker_stopped_);
}

std::string Engine::readable(std::string_view said) const {
    const std::string text = one_line(said);
    const auto ids = container_ids(text);
    if (ids.empty()) return text;
    std::map<std::string, std::string> names;
    if (const auto asked =
            run({"ps", "--all", "--no-trunc", "--format", "{{.ID}} {{.Names}}"}, kQuestion, Check::Nothing))
        for (const std::string& line : lines_of(asked->out))
            if (line.size() > kIdDigits + 1 && line[kIdDigits] == ' ')
                names[line.substr(0, kIdDigits)] = one_line(line.substr(kIdDigits + 1));
    return with_names(text, names);
}

Command Engine::command(const std::vector<std::string>& words, bool terminal) const {
    std::vector<std::string> argv = {std::string(name_of(kind_))};
    argv.insert(argv.end(), words.begin(), words.end());
    return target_.command(argv, terminal);
}

host::Result<Outcome> Engine::run(const std::vector<std::string>& words, Milliseconds timeout, Check check) const {
    std::vector<std::string> argv = {std::string(name_of(kind_))};
    argv.insert(argv.end(), words.begin(), words.end());
    TRY_ASSIGN(Outcome outcome, target_.capture(argv, timeout));
    if (check == Check::Nothing || outcome.ok()) return outcome;
    const std::string what = fmt::format("{} {}", name_of(kind_), words.empty() ? "" : words[0]);
    if (outcome.timed_out)
        return host::failure(ErrorCode::Timeout, "`{}` did not end within {} s", what, timeout.count() / 1000);
    return host::failure(ErrorCode::AccessFailed, "`{}` failed with exit status {}: {}", what, outcome.status,
                         readable(outcome.err.empty() ? outcome.out : outcome.err));
}

host::Result<EngineInfo> Engine::info() const {
    if (!info_json_.empty()) return parse_info(kind_, info_json_);
    TRY_ASSIGN(const Outcome outcome,
               run({"info", "--format", kind_ == EngineKind::Docker ? "{{json .}}" : "json"}, kQuestion));
    return parse_info(kind_, outcome.out);
}

host::Result<std::vector<Container>> Engine::containers(const std::string& project) const {
    const std::string engine(name_of(kind_));
    const std::string filter = shell_quoted(project.empty() ? fmt::format("label={}", kLabelProject)
                                                            : fmt::format("label={}={}", kLabelProject, project));
    // One session for both: the states as the engine words them, and everything else.
    const std::string script = fmt::format(
        "all=$({0} ps -a --no-trunc --filter {1} --format '{{{{.ID}}}}|{{{{.Status}}}}') || exit 1\n"
        "printf '%s\\n' \"$all\"\necho ---\nids=$(printf '%s\\n' \"$all\" | cut -d '|' -f 1)\n"
        "if [ -n \"$ids\" ]; then {0} inspect --type container $ids; else echo '[]'; fi",
        engine, filter);
    Command command = target_.shell(script);
    command.timeout = kQuestion;
    TRY_ASSIGN(const Outcome outcome, capture(command));
    if (!outcome.ok())
        return host::failure(ErrorCode::AccessFailed, "cannot list the containers: {}",
                             outcome.timed_out ? "timed out" : one_line(outcome.err));
    const std::size_t cut = outcome.out.find("---\n");
    if (cut == std::string::npos)
        return host::failure(ErrorCode::InvalidArgument, "{} answered something that is no list of containers", engine);
    auto found = parse_containers(kind_, outcome.out.substr(cut + 4), outcome.out.substr(0, cut));
    if (found && found->empty()) nothing_found();
    return found;
}

host::Result<std::vector<Image>> Engine::inspect_images(const std::string& script) const {
    Command command = target_.shell(script);
    command.timeout = kQuestion;
    TRY_ASSIGN(const Outcome outcome, capture(command));
    if (!outcome.ok())
        return host::failure(ErrorCode::AccessFailed, "cannot list the images: {}",
                             outcome.timed_out ? "timed out" : one_line(outcome.err));
    return parse_images(outcome.out);
}

host::Result<std::vector<Image>> Engine::images(const std::vector<std::string>& names) const {
    if (names.empty()) return std::vector<Image>{};
    // `inspect` of several stops at none, but fails when one is missing: what it found is on standard output all the
    // same.
    const std::string script =
        fmt::format("{} image inspect {} 2>/dev/null || true", name_of(kind_), shell_quoted(names));
    return inspect_images(script);
}

host::Result<std::vector<Image>> Engine::all_images() const {
    return inspect_images(
        fmt::format("ids=$({0} images -aq --no-trunc | sort -u) || exit 1; if [ -n \"$ids\" ]; then {0} image inspect "
                    "$ids; else echo '[]'; fi",
                    name_of(kind_)));
}

host::Result<bool> Engine::exists(const char* kind, const std::string& name) const {
    TRY_ASSIGN(const Outcome outcome, run({kind, "inspect", name}, kQuestion, Check::Nothing));
    if (outcome.timed_out)
        return host::failure(ErrorCode::Timeout, "`{} {} inspect` does not end", name_of(kind_), kind);
    return outcome.ok();
}

host::Result<bool> Engine::make_unless_there(const char* kind, const std::string& name,
                                             const std::vector<std::string>& words) const {
    const std::string engine(name_of(kind_));
    Command command =
        target_.shell(fmt::format("{0} {1} inspect {2} >/dev/null 2>&1 && exit 0; {0} {3} >/dev/null && echo made",
                                  engine, kind, shell_quoted(name), shell_quoted(words)));
    command.timeout = 4 * kQuestion;
    TRY_ASSIGN(const Outcome outcome, capture(command));
    if (outcome.ok()) return trimmed(outcome.out) == "made";
    return host::failure(ErrorCode::AccessFailed, "`{} {} create` of {} failed: {}", engine, kind, name,
                         outcome.timed_out ? "timed out" : one_line(outcome.err));
}

host::Result<void> Engine::tag(const std::string& from, const std::string& to) const {
    TRY(run({"tag", from, to}, kQuestion));
    return {};
}

}  // namespace talpa::topo
