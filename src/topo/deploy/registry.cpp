#include "topo/deploy/registry.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "base/host/file.h"
#include "base/host/json.h"
#include "base/host/sha256.h"
#include "topo/deploy/listeners.h"
#include "topo/deploy/words.h"
#include "topo/system/next_command.h"
#include "topo/system/text.h"
#include "topo/target/ssh_arguments.h"
#include "topo/target/ssh_error.h"

namespace talpa::topo {
namespace {

using host::Json;

constexpr const char* kContainer = "topo-registry";
constexpr Milliseconds kClose(5000);

// --- the registry ---

host::Result<void> have_image(const Engine& host, const std::string& image) {
    // The original pulls it every time, and so does not work without a network although it is here (section 13-8).
    TRY_ASSIGN(const std::vector<Image> here, host.images({image}));
    if (!here.empty()) return {};
    TRY_ASSIGN(const Outcome pulled, host.run({"pull", image}, Milliseconds(0), Engine::Check::Nothing));
    if (pulled.ok()) return {};
    return std::unexpected(host::Error(
        ErrorCode::NotFound, fmt::format("the image {} is not here and cannot be pulled: {}", image, said_by(pulled)),
        "without --registry no image of a registry is needed"));
}

host::Result<void> run_registry(const Engine& host, int port) {
    const std::string image = host.kind() == EngineKind::Podman ? "docker.io/library/registry:2" : "registry:2";
    TRY_ASSIGN(const Outcome found,
               host.run({"inspect", "--type", "container", kContainer}, kQuestion, Engine::Check::Nothing));
    if (found.ok()) {
        TRY_ASSIGN(const RegistryContainer there, parse_registry_container(found.out));
        // One that never ran was left by a start that failed.
        if (there.state != "created") {
            if (there.port != port)
                return std::unexpected(host::Error(
                    ErrorCode::InvalidState,
                    fmt::format(
                        "registry port mismatch (running: {}, requested: {})\nyou may need to stop the existing "
                        "topo-registry: {} rm -f topo-registry",
                        there.port, port, name_of(host.kind())),
                    fmt::format("{} rm -f {}", name_of(host.kind()), kContainer)));
            if (there.state != "running") TRY(host.run({"start", kContainer}, kStartTime));
            return {};
        }
        TRY(host.run({"rm", "--force", kContainer}, kStartTime));
    }
    TRY(have_image(host, image));
    TRY_ASSIGN(const Outcome ran, host.run({"run", "-d", "--restart", "always", "-p",
                                            fmt::format("127.0.0.1:{}:5000", port), "--name", kContainer, image},
                                           kStartTime, Engine::Check::Nothing));
    if (ran.ok()) return {};
    (void)host.run({"rm", "--force", kContainer}, kStartTime, Engine::Check::Nothing);
    const std::string said = said_by(ran);
    const bool taken =
        said.find("already allocated") != std::string::npos || said.find("already in use") != std::string::npos;
    return std::unexpected(host::Error(
        ErrorCode::AccessFailed,
        fmt::format(
            "the registry did not start: {}{}", said,
            taken ? fmt::format(
                        "; port {} is already in use, this could be an existing topo-registry or another process", port)
                  : ""),
        "--registry-port chooses another port"));
}

// --- the tunnel ---

// A connection of its own: the shared one ends ten seconds after its last session, and the tunnel with it.
class Tunnel {
  public:
    static host::Result<Tunnel> open(const Target& target, int port, EngineKind host) {
        const std::string name = "topo-tunnel-" + host::sha256_hex(target.destination().uri()).substr(0, 16);
        const std::string folder =
            control_folder().empty() ? std::filesystem::temp_directory_path().string() : control_folder();
        Tunnel tunnel(target, folder + "/" + name);
        (void)tunnel.close();  // of an earlier run that could not
        Command command{.argv = target.ssh_words_alone({"-N", "-o", "ExitOnForwardFailure=yes", "-fMS", tunnel.socket_,
                                                        "-R", fmt::format("127.0.0.1:{0}:127.0.0.1:{0}", port)}),
                        .timeout = Milliseconds(60'000)};
        // ssh may have to ask for a password on the terminal: then it must be in our group.
        const bool asks = ::isatty(STDIN_FILENO) != 0;
        TRY_ASSIGN(const Outcome outcome, asks ? pass_through(command, Output::ErrorsOnly) : capture(command));
        if (outcome.ok()) {
            tunnel.is_open_ = true;
            return tunnel;
        }
        std::string said = outcome.timed_out ? "timed out" : said_by(outcome);
        if (said.empty()) said = fmt::format("exit status {}", outcome.status);
        return std::unexpected(host::Error(
            ErrorCode::AccessFailed,
            fmt::format("failed to open SSH tunnel: {}; ensure port {} is free or specify a different one "
                        "with `--registry-port`",
                        said, port),
            // The registry runs on this port by now, and would be refused on another.
            fmt::format("{} rm -f -v {} && {}", name_of(host), kContainer,
                        next_command(fmt::format("deploy --registry-port {}", port < 65535 ? port + 1 : port - 1),
                                     target.destination().uri()))));
    }
    Tunnel(Tunnel&& other) noexcept
        : target_(other.target_), socket_(std::move(other.socket_)), is_open_(std::exchange(other.is_open_, false)) {}
    Tunnel(const Tunnel&) = delete;
    Tunnel& operator=(const Tunnel&) = delete;
    Tunnel& operator=(Tunnel&&) = delete;
    ~Tunnel() {
        if (is_open_) (void)close();
    }
    /// Whatever was interrupted: an open tunnel is not left behind.
    bool close() {
        is_open_ = false;
        std::error_code ignored;
        if (!std::filesystem::exists(socket_, ignored)) return true;
        const InterruptShield shield;
        const auto ended = capture({.argv = target_.ssh_words_alone({"-S", socket_, "-O", "exit"}), .timeout = kClose});
        if (ended && ended->ok()) return true;
        std::filesystem::remove(socket_, ignored);  // nobody listens there any more
        return false;
    }

  private:
    Tunnel(Target target, std::string socket) : target_(std::move(target)), socket_(std::move(socket)) {}
    Target target_;
    std::string socket_;
    bool is_open_ = false;
};

// A target that is this machine (another name of it, a user and a port) reaches the registry without a tunnel, whose
// port would be the registry's own.
constexpr const char* kMachineScript = "cat /proc/sys/kernel/random/boot_id && readlink /proc/self/ns/net";

host::Result<bool> is_this_machine(const Target& target) {
    Command here{.argv = {"/bin/sh", "-c", kMachineScript}, .timeout = kQuestion};
    Command there = target.shell(kMachineScript);
    there.timeout = kQuestion;
    TRY_ASSIGN(const Outcome ours, capture(here));
    TRY_ASSIGN(const Outcome theirs, capture(there));
    return ours.ok() && theirs.ok() && !ours.out.empty() && ours.out == theirs.out;
}

host::Result<void> check_exposure(const Target& target, int port) {
    Command command = target.shell("cat /proc/net/tcp && { cat /proc/net/tcp6 2>/dev/null || true; }");
    command.timeout = kQuestion;
    TRY_ASSIGN(const Outcome outcome, capture(command));
    constexpr const char* kSkip = "--skip-remote-port-check goes on without";
    if (!outcome.ok())
        return std::unexpected(host::Error(ErrorCode::AccessFailed,
                                           fmt::format("cannot conclusively rule out network access to registry port "
                                                       "{} because the exposure check did not complete: {}",
                                                       port, outcome.timed_out ? "timed out" : said_by(outcome)),
                                           kSkip));
    const std::vector<std::string> exposed = exposed_listeners(outcome.out, port);
    if (exposed.empty()) return {};
    return std::unexpected(host::Error(
        ErrorCode::InvalidState,
        fmt::format("the remote SSH server is exposing forwarded registry port {} beyond remote loopback (listens on "
                    "{}); configure the "
                    "SSH server to bind remote forwards to loopback only (GatewayPorts no), or use --no-registry",
                    port, printable(joined(exposed, ", "), LineEnds::Replace)),
        kSkip));
}

// --- one image ---

// A name that an image has for the way only: it goes whatever happens, an interrupt included.
class LentName {
  public:
    LentName(const Engine& engine, std::string name) : engine_(engine), name_(std::move(name)) {}
    LentName(const LentName&) = delete;
    LentName& operator=(const LentName&) = delete;
    ~LentName() {
        const InterruptShield shield;
        std::vector<std::string> untag = {"rmi", name_};
        if (engine_.kind() == EngineKind::Docker) untag.insert(untag.begin() + 1, "--no-prune");
        (void)engine_.run(untag, kQuestion, Engine::Check::Nothing);
    }

  private:
    const Engine& engine_;
    std::string name_;
};

// Podman prints no digest; it writes it into a file.
class DigestFile {
  public:
    DigestFile() : path_(std::filesystem::temp_directory_path() / fmt::format("topo-digest-{}", ::getpid())) {}
    DigestFile(const DigestFile&) = delete;
    DigestFile& operator=(const DigestFile&) = delete;
    ~DigestFile() {
        std::error_code ignored;
        std::filesystem::remove(path_, ignored);
    }
    [[nodiscard]] std::string path() const { return path_.string(); }
    [[nodiscard]] std::string digest() const {
        const auto text = host::read_text(path_, 4096);
        return text ? pushed_digest("digest: " + std::string(trimmed(*text))) : std::string();
    }

  private:
    std::filesystem::path path_;
};

// What it can be pulled by.
host::Result<std::string> push(const ImageToSend& one, const Engine& host, int port,
                               const std::function<void(std::string_view)>& said) {
    const std::string name = registry_name(one.host_name, port);
    const bool podman = host.kind() == EngineKind::Podman;
    const LentName lent(host, name);
    const DigestFile file;
    TRY(host.tag(one.host_name, name));
    std::string digest, last;
    std::vector<std::string> words = {"push"};
    if (podman) words.insert(words.end(), {"--tls-verify=false", "--digestfile", file.path()});
    words.push_back(name);
    TRY_ASSIGN(const Outcome pushed, stream_lines(host.command(words), [&](std::string_view line) {
                   said(line);
                   last = line;
                   if (const std::string found = pushed_digest(line); !found.empty()) digest = found;
               }));
    if (podman) digest = file.digest();
    if (pushed.status != 0 || digest.empty())
        return host::failure(ErrorCode::AccessFailed, "pushing {} to the registry failed (exit status {}): {}",
                             one.host_name, pushed.status, printable(last, LineEnds::Replace));
    return name.substr(0, name.find(':', name.rfind('/'))) + "@" + digest;
}

host::Result<void> pull(const ImageToSend& one, const std::string& by_digest, const Engine& target,
                        const std::function<void(std::string_view)>& said) {
    std::vector<std::string> words = {"pull"};
    if (target.kind() == EngineKind::Podman) words.emplace_back("--tls-verify=false");
    words.push_back(by_digest);
    std::string last;
    // The reference by digest would keep the image when a newer one takes its name.
    const LentName lent(target, by_digest);
    TRY_ASSIGN(const Outcome pulled, stream_lines(target.command(words), [&](std::string_view line) {
                   said(line);
                   last = line;
               }));
    if (pulled.status != 0)
        return host::failure(ErrorCode::AccessFailed, "the target cannot pull {} (exit status {}): {}", by_digest,
                             pulled.status, printable(last, LineEnds::Replace));
    return target.tag(by_digest, with_tag(one.target_name));
}

host::Result<void> send_one(const ImageToSend& one, const Engine& host, const Engine& target, int port,
                            const std::function<void(std::string_view)>& said) {
    TRY_ASSIGN(const std::string by_digest, push(one, host, port, said));
    TRY(pull(one, by_digest, target, said));
    TRY_ASSIGN(const std::vector<Image> there, target.images({with_tag(one.target_name)}));
    if (there.empty() || there.front().id != one.image.id)
        return host::failure(ErrorCode::InvalidExternalData, "{} arrived on the target as another image",
                             one.host_name);
    return {};
}

}  // namespace

std::string registry_name(const std::string& image, int port) {
    std::string name = short_image_name(image);
    if (const std::size_t at = name.find('@'); at != std::string::npos) name.resize(at);
    return fmt::format("localhost:{}/{}", port, name);
}

std::string pushed_digest(std::string_view line) {
    constexpr std::string_view kDigestMark = "digest: sha256:";
    const std::size_t at = line.find(kDigestMark);
    if (at == std::string_view::npos) return {};
    const std::string_view digits = line.substr(at + kDigestMark.size(), 64);
    if (digits.size() != 64 || digits.find_first_not_of("0123456789abcdef") != std::string_view::npos) return {};
    return "sha256:" + std::string(digits);
}

host::Result<RegistryContainer> parse_registry_container(const std::string& inspect_json) {
    const Json document = Json::parse(inspect_json, nullptr, false);
    if (document.is_discarded() || !document.is_array() || document.empty() || !document[0].is_object())
        return host::failure(ErrorCode::InvalidExternalData, "inspect of {} answered something that is not its JSON",
                             kContainer);
    RegistryContainer found;
    const Json state = document[0].value("State", Json::object());
    if (state.is_object() && state.contains("Status") && state["Status"].is_string())
        found.state = lower(state["Status"].get<std::string>());
    if (found.state == "configured") found.state = "created";  // Podman's word
    const Json config = document[0].value("HostConfig", Json::object());
    if (!config.is_object() || !config.contains("PortBindings") || !config["PortBindings"].is_object()) return found;
    const Json bindings = config["PortBindings"].value("5000/tcp", Json::array());
    if (!bindings.is_array() || bindings.empty() || !bindings[0].is_object()) return found;
    const Json port = bindings[0].value("HostPort", Json());
    if (!port.is_string()) return found;
    const std::string digits = port.get<std::string>();
    int number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error == std::errc() && end == digits.data() + digits.size()) found.port = number;
    return found;
}

host::Result<void> send_by_registry(const TransferPlan& plan, const Engine& host, const Engine& target,
                                    const RegistryOptions& options, const std::function<void(std::string_view)>& stage,
                                    const std::function<void(std::string_view)>& said) {
    for (const ImageToSend& one : plan.only_tag) TRY(target.tag(one.image.id, with_tag(one.target_name)));
    if (plan.send.empty()) return {};
    stage("Run registry");
    TRY(run_registry(host, options.port));
    std::optional<Tunnel> tunnel;
    TRY_ASSIGN(const bool same, is_this_machine(target.target()));
    if (same) {
        said("the target is this machine: no tunnel");
    } else {
        stage("Open registry SSH tunnel");
        TRY_ASSIGN(Tunnel opened, Tunnel::open(target.target(), options.port, host.kind()));
        tunnel.emplace(std::move(opened));
        if (!target.target().destination().is_localhost() && !options.skip_exposure_check) {
            stage("Check registry tunnel is not exposed on remote network");
            TRY(check_exposure(target.target(), options.port));
            said(fmt::format("Registry port {} is bound to remote loopback only", options.port));
        }
    }
    stage("Transfer via registry");
    std::vector<ImageToSend> images = plan.send;
    std::sort(images.begin(), images.end(),
              [](const ImageToSend& a, const ImageToSend& b) { return a.host_name < b.host_name; });
    for (const ImageToSend& one : images) TRY(send_one(one, host, target, options.port, said));
    if (tunnel) {
        stage("Close registry SSH tunnel");
        if (!tunnel->close())
            return host::failure(ErrorCode::AccessFailed, "the SSH tunnel of the registry did not close");
    }
    return {};
}

}  // namespace talpa::topo
