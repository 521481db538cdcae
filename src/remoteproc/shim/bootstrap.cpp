#include "remoteproc/shim/bootstrap.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/host/environment.h"
#include "base/host/sha256.h"
#include "remoteproc/oci/settings.h"
#include "remoteproc/oci/spec.h"
#include "remoteproc/oci/state.h"
#include "remoteproc/shim/mounts.h"
#include "remoteproc/shim/wire.h"
#include "remoteproc/sys/files.h"
#include "remoteproc/sys/path_guard.h"
#include "remoteproc/sys/process.h"

namespace talpa::remoteproc::shim {
namespace {

constexpr std::size_t kInputLimit = 10 << 20;
constexpr std::string_view kSocketFolder = "/run/containerd/s", kAddressFile = "address";
constexpr int kConnectMs = 100;

std::string read_input() {
    std::string text;
    char buffer[4096];
    ssize_t n;
    while (text.size() < kInputLimit && (n = ::read(0, buffer, sizeof buffer)) != 0) {
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) break;
        text.append(buffer, static_cast<std::size_t>(n));
    }
    return text;
}

bool fill(sockaddr_un& where, const std::string& path) {
    where = {};
    where.sun_family = AF_UNIX;
    if (path.size() >= sizeof where.sun_path) return false;
    std::memcpy(where.sun_path, path.data(), path.size());
    return true;
}

bool connectable(const std::string& path) {
    sockaddr_un where;
    const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket || !fill(where, path)) return false;
    if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&where), sizeof where) == 0) return true;
    if (errno != EAGAIN && errno != EINPROGRESS) return false;
    pollfd wait{socket.get(), POLLOUT, 0};
    return ::poll(&wait, 1, kConnectMs) == 1 && (wait.revents & POLLERR) == 0;
}

Result<Fd> listen_at(const std::string& path) {
    sockaddr_un where;
    if (!fill(where, path))
        return host::failure(ErrorCode::InvalidArgument, "socket path {} is longer than {} bytes", path,
                             sizeof where.sun_path - 1);
    Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket) return os_failure("create", "socket", errno);
    const mode_t before = ::umask(0177);
    const int bound = ::bind(socket.get(), reinterpret_cast<sockaddr*>(&where), sizeof where);
    const int error = errno;
    ::umask(before);
    if (bound != 0) return os_failure("bind", path, error);
    if (::listen(socket.get(), 64) != 0) return os_failure("listen", path, errno);
    return socket;
}

std::string path_of(const std::string& address) {
    return address.starts_with("unix://") ? address.substr(7) : address;
}

// The pod that a container belongs to, unless it is the pod's sandbox itself.
std::optional<std::string> pod_of(const ShimOptions& options) {
    const auto spec = load_spec(".");
    if (!spec) return std::nullopt;
    auto pod = sandbox_id(spec->annotations);
    return pod && *pod != options.id ? pod : std::nullopt;
}

Result<void> spawn_server(const ShimOptions& options, const std::string& address, const Fd& listener,
                          const std::string& ttrpc, const std::string& grpc, bool debug) {
    char self[4096];
    const ssize_t n = ::readlink("/proc/self/exe", self, sizeof self);
    const std::string program(self, static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    SpawnOptions server;
    server.executable = "/proc/self/exe";
    server.arguments = {program,    "-namespace", options.namespace_name, "-id",  options.id,
                        "-address", address,      "-publish-binary",      program};
    if (debug) server.arguments.emplace_back("-debug");
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string_view text = *entry;
        if (!text.starts_with("TTRPC_ADDRESS=") && !text.starts_with("GRPC_ADDRESS="))
            server.environment.emplace_back(text);
    }
    server.environment.push_back("TTRPC_ADDRESS=" + ttrpc);
    server.environment.push_back("GRPC_ADDRESS=" + grpc);
    server.fds = {null.get(), null.get(), null.get(), listener.get()};
    server.new_session = true;
    TRY(spawn(server));
    return {};
}

Result<std::string> start(const ShimOptions& options) {
    const std::string input = read_input();
    const auto modern = parse_bootstrap(input, options);
    const std::string grpc = modern && !modern->grpc_address.empty() ? modern->grpc_address : options.address;
    const std::string ttrpc =
        modern && !modern->ttrpc_address.empty() ? modern->ttrpc_address : host::environment("TTRPC_ADDRESS");
    const bool json = !host::environment("MAX_SHIM_VERSION").empty();
    std::string folder(kSocketFolder);
    if (modern && !modern->socket_folder.empty()) {
        folder = modern->socket_folder;
        ::unlink("s");
        (void)!::symlink(folder.c_str(), "s");
    }
    const auto reply = [&](const std::string& address) -> Result<std::string> {
        // containerd reads this file when it starts again and finds the bundle.
        TRY(replace_file(std::string(kAddressFile), address, 0644));
        return start_reply(address, modern.has_value(), json);
    };
    if (const auto pod = pod_of(options)) {
        const std::string address = socket_address(folder, grpc, options.namespace_name, *pod);
        if (connectable(path_of(address))) return reply(address);
    }
    TRY(make_folders(folder));
    if (folder == kSocketFolder) ::chmod(folder.c_str(), 0700);
    const std::string address = socket_address(folder, grpc, options.namespace_name, options.id);
    auto listener = listen_at(path_of(address));
    if (!listener) {
        if (connectable(path_of(address))) return reply(address);
        ::unlink(path_of(address).c_str());
        listener = listen_at(path_of(address));
    }
    if (!listener) return std::unexpected(std::move(listener.error()));
    if (auto spawned =
            spawn_server(options, address, *listener, ttrpc, grpc, options.debug || (modern && modern->debug));
        !spawned) {
        ::unlink(path_of(address).c_str());
        return std::unexpected(std::move(spawned.error()));
    }
    return reply(address);
}

struct CommandOutcome {
    int status = -1;
    std::string output;
};

CommandOutcome run_runtime(const std::vector<std::string>& words) {
    CommandOutcome outcome;
    const std::string runtime = find_runtime();
    int ends[2];
    if (runtime.empty() || ::pipe2(ends, O_CLOEXEC) != 0) return outcome;
    const Fd reader(ends[0]);
    Fd writer(ends[1]);
    const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    SpawnOptions options;
    options.executable = runtime;
    options.arguments = {"remoteproc-runtime"};
    options.arguments.insert(options.arguments.end(), words.begin(), words.end());
    for (char** entry = environ; *entry != nullptr; ++entry) options.environment.emplace_back(*entry);
    options.fds = {null.get(), writer.get(), words.front() == "state" ? null.get() : 2};
    const auto pid = spawn(options);
    writer.reset();
    if (!pid) return outcome;
    char buffer[4096];
    ssize_t n;
    while ((n = ::read(reader.get(), buffer, sizeof buffer)) > 0 && outcome.output.size() < kInputLimit)
        outcome.output.append(buffer, static_cast<std::size_t>(n));
    int status = 0;
    if (::waitpid(*pid, &status, 0) == *pid && WIFEXITED(status)) outcome.status = WEXITSTATUS(status);
    return outcome;
}

// A number behind `"key":` of a flat JSON text. Inside a string the quotes would be escaped, so this is no other's
// text.
std::uint64_t json_number(std::string_view text, std::string_view key) {
    const std::size_t at = text.find("\"" + std::string(key) + "\":");
    if (at == std::string_view::npos) return 0;
    const std::size_t begin = text.find_first_of("0123456789-", at + key.size() + 3);
    std::uint64_t value = 0;
    if (begin != std::string_view::npos) std::from_chars(text.data() + begin, text.data() + text.size(), value);
    return value;
}

// "" where it has none.
std::string state_bundle(std::string_view text) {
    const auto state = parse_state_file(text);
    return state ? state->bundle : "";
}

bool same_folder(const std::string& a, const std::string& b) {
    if (clean_path(a) == clean_path(b)) return true;
    struct stat one, other;
    return ::stat(a.c_str(), &one) == 0 && ::stat(b.c_str(), &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

}  // namespace

std::optional<BootstrapParams> parse_bootstrap(std::string_view bytes, const ShimOptions& options) {
    BootstrapParams p;
    WireReader reader(bytes);
    while (reader.next()) {
        switch (reader.field()) {
            case 1:
                p.instance_id = reader.bytes();
                break;
            case 2:
                p.namespace_name = reader.bytes();
                break;
            case 3:
                p.debug = static_cast<std::int32_t>(reader.number()) < 0;
                break;  // TRACE -8, DEBUG -4
            case 5:
                p.ttrpc_address = reader.bytes();
                break;
            case 6:
                p.grpc_address = reader.bytes();
                break;
            case 9:
                p.socket_folder = reader.bytes();
                break;
            default:
                break;
        }
    }
    const auto differs = [](const std::string& flag, const std::string& value) {
        return !flag.empty() && flag != value;
    };
    if (!reader.sound() || p.instance_id.empty() || p.namespace_name.empty()) return std::nullopt;
    if (p.ttrpc_address.empty() && p.grpc_address.empty()) return std::nullopt;
    if (differs(options.id, p.instance_id) || differs(options.namespace_name, p.namespace_name)) return std::nullopt;
    if (!p.grpc_address.empty() && differs(options.address, p.grpc_address)) return std::nullopt;
    if (!p.socket_folder.empty() && !p.socket_folder.starts_with('/')) return std::nullopt;
    return p;
}

std::string socket_address(const std::string& folder, const std::string& containerd, const std::string& ns,
                           const std::string& id) {
    return "unix://" + folder + "/" + host::sha256_hex(clean_path(containerd + "/" + ns + "/" + id));
}

std::string start_reply(const std::string& address, bool modern, bool json) {
    if (modern) {
        WireWriter w;
        w.number(1, 3);
        w.text(2, address);
        w.text(3, "ttrpc");
        return w.bytes();
    }
    if (json) return fmt::format("{{\"version\":2,\"address\":\"{}\",\"protocol\":\"ttrpc\"}}", address);
    return address;
}

int run_start(const ShimOptions& options) {
    const auto text = start(options);
    if (!text) {
        (void)write_all(2, fmt::format("{}: {}\n", kShimName, error_line(text.error())));
        return 1;
    }
    return write_all(1, *text) ? 0 : 1;
}

int run_delete(const ShimOptions& options) {
    const std::string bundle = options.bundle.empty() ? "." : options.bundle;
    // The runtime looks for the container in this namespace.
    ::setenv("REMOTEPROC_NAMESPACE", options.namespace_name.c_str(), 1);
    const CommandOutcome state = run_runtime({"state", options.id});
    const std::uint64_t pid = json_number(state.output, "pid");
    // A create that was refused because the id is taken ends here, too: that container is not this one's to delete.
    const bool ours = state.status == 0 && same_folder(state_bundle(state.output), absolute_path(bundle));
    if (ours) (void)run_runtime({"delete", "--force", options.id});
    unmount_all(bundle + "/rootfs");
    // The socket of a server that was killed; a pod's other containers may still have theirs.
    const auto address = read_small_file(bundle + "/" + std::string(kAddressFile), 4096);
    if (address && address->starts_with("unix:///") && !connectable(path_of(*address)))
        ::unlink(path_of(*address).c_str());
    ExitRecord record = read_exit_record(bundle).value_or(ExitRecord{pid, kExitKilled, unix_ns_now()});
    WireWriter reply;
    reply.number(1, record.pid != 0 ? record.pid : pid);
    reply.number(2, record.status);
    reply.message(3, timestamp(record.exited_ns));
    return write_all(1, reply.bytes()) ? 0 : 1;
}

std::string info_bytes(std::string_view version) {
    WireWriter numbers;
    numbers.text(1, version);
    numbers.text(2, "unknown");
    WireWriter w;
    w.text(1, kShimName);
    w.message(2, numbers.bytes());
    return w.bytes();
}

void write_exit_record(const std::string& bundle, const ExitRecord& r) {
    (void)replace_file(bundle + "/exit.json",
                       fmt::format("{{\"pid\":{},\"exitStatus\":{},\"exitedAt\":{}}}", r.pid, r.status, r.exited_ns),
                       0600);
}

std::optional<ExitRecord> read_exit_record(const std::string& bundle) {
    const auto text = read_small_file(bundle + "/exit.json", 4096);
    if (!text) return std::nullopt;
    ExitRecord r{json_number(*text, "pid"), json_number(*text, "exitStatus"), json_number(*text, "exitedAt")};
    if (r.exited_ns == 0) return std::nullopt;
    return r;
}

}  // namespace talpa::remoteproc::shim
