// create: everything is checked and resolved, the proxy stands in its namespaces, hooks have run; no write to the core.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include <cerrno>
#include <csignal>

#include "remoteproc/oci/allow.h"
#include "remoteproc/oci/container.h"
#include "remoteproc/oci/hooks.h"
#include "remoteproc/oci/log.h"
#include "remoteproc/oci/namespaces.h"
#include "remoteproc/oci/operations.h"
#include "remoteproc/oci/proxy.h"
#include "remoteproc/sys/files.h"
#include "remoteproc/sys/path_guard.h"

namespace talpa::remoteproc {
namespace {

constexpr int kCreateLockMs = 10000;
constexpr int kRollbackGraceMs = 500;

// What create found out before it makes anything.
struct Plan {
    Spec spec;
    Wishes wishes;
    ContainerKind kind = ContainerKind::Firmware;
    Device device;
    const CoreFacts* core = nullptr;
    std::string root_folder;
    FirmwareSource firmware;
    NamespacePlan namespaces;
};

Result<std::string> root_folder(const Spec& spec, const std::string& bundle) {
    if (!spec.root || spec.root->empty())
        return host::failure(
            ErrorCode::InvalidArgument,
            "failed to read container specification: invalid container specification: missing root.path");
    if (spec.root->starts_with('/')) return clean_path(*spec.root);
    // Engines give an absolute path, bundles by hand "rootfs"; what climbs out of the bundle is neither.
    const auto inside = clean_below_root(*spec.root);
    if (!inside)
        return host::failure(ErrorCode::InvalidArgument, "root.path {:?} leads out of the bundle",
                             printable(*spec.root));
    return clean_path(bundle + *inside);
}

// In a pod every container gets this runtime, also one that holds a program for Linux.
Result<void> check_pod_member(const Plan& plan) {
    if (!sandbox_id(plan.spec.annotations)) return {};
    const auto machine = elf_machine(plan.firmware.bytes());
    if (machine != host_machine()) return {};
    host::Error error(ErrorCode::NotSupported,
                      fmt::format("{} is a program for Linux, and this pod's runtime boots remote processors",
                                  printable(plan.firmware.path)));
    error.hint = "give it a pod of its own, without runtimeClassName: remoteproc";
    return std::unexpected(std::move(error));
}

Result<void> plan_firmware(const Settings& settings, const std::string& bundle, Plan& plan) {
    TRY_ASSIGN(plan.wishes, read_wishes(plan.spec.annotations, &plan.spec, settings.runc_style));
    TRY_ASSIGN(plan.device, host::with_context(find_device(settings.paths, plan.wishes.selector),
                                               "can't determine remoteproc path"));
    if (const auto warning = selection_warning(plan.spec.annotations, plan.wishes)) log(LogLevel::Warn, *warning);
    TRY(check_allowed(settings.paths, plan.device));
    if (!plan.spec.arguments || plan.spec.arguments->size() != 1) {
        host::Error error(ErrorCode::InvalidArgument,
                          "can't extract firmware name: expected exactly one process argument");
        error.hint = sandbox_id(plan.spec.annotations)
                         ? "a program for Linux wants a pod of its own, without runtimeClassName: remoteproc"
                         : "the image's entry point is the firmware file and nothing else: ENTRYPOINT [\"x.elf\"]";
        return std::unexpected(std::move(error));
    }
    TRY_ASSIGN(plan.root_folder, root_folder(plan.spec, bundle));
    auto firmware = open_firmware(plan.root_folder, plan.spec.arguments->front(), plan.wishes.max_size);
    if (!firmware) {
        if (firmware.error().code == ErrorCode::NotFound)
            return std::unexpected(std::move(firmware.error()).with_context("requested firmware does not exist"));
        return std::unexpected(std::move(firmware.error()).with_context("requested firmware is refused"));
    }
    plan.firmware = std::move(*firmware);
    TRY(check_pod_member(plan));
    plan.core = known_core(settings.paths, plan.device);
    TRY(host::with_context(check_firmware(plan.firmware.bytes(), plan.core, plan.wishes.elf),
                           "firmware " + printable(plan.firmware.path) + " is refused"));
    return {};
}

Result<void> plan_namespaces_for(Plan& plan) {
    const bool root = ::geteuid() == 0;
    const std::string context = "failed to start proxy process";
    TRY_ASSIGN(plan.namespaces,
               host::with_context(plan_namespaces(plan.spec.namespaces, root && plan.kind == ContainerKind::Sandbox),
                                  context));
    if (root) return {};
    log(LogLevel::Warn, "running non-root; namespace isolation disabled");
    plan.namespaces.clone_flags = 0;
    // A hook that sets up a network enters the namespace of our process: here that would be the machine's own.
    for (const HookKind kind : {HookKind::Prestart, HookKind::CreateRuntime, HookKind::CreateContainer})
        if (!plan.spec.hooks[static_cast<std::size_t>(kind)].empty())
            return host::failure(ErrorCode::NotSupported,
                                 "{}: hooks need namespaces of their own, which only root can make here", context);
    return {};
}

Result<Plan> make_plan(const Settings& settings, const std::string& bundle) {
    Plan plan;
    TRY_ASSIGN(plan.spec, load_spec(bundle));
    if (plan.spec.terminal)
        return host::failure(
            ErrorCode::NotSupported,
            "process.terminal: firmware has no terminal; run without -t (annotation remoteproc.console "
            "joins an RPMsg tty to the output)");
    plan.kind = container_kind(plan.spec.annotations);
    if (plan.kind == ContainerKind::Firmware) TRY(plan_firmware(settings, bundle, plan));
    TRY(plan_namespaces_for(plan));
    return plan;
}

// Files that the proxy gets. They stay open here until it has them.
struct ProxyFiles {
    Fd null, events, log, commit_reader, commit_writer, state, recovery, debug, memory;
};

Result<ProxyFiles> open_files(const Settings& settings, const Plan& plan, const Container& container) {
    ProxyFiles f;
    f.null = Fd(::open("/dev/null", O_RDWR | O_CLOEXEC));
    if (!f.null) return os_failure("open", "/dev/null", errno);
    const auto append = [&](std::string_view name) {
        return Fd(::open(container.file(name).c_str(), O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600));
    };
    f.events = append(kEventsFileName);
    f.log = append(kLogFileName);
    if (!f.events || !f.log) return os_failure("open", container.folder, errno);
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return os_failure("create", "pipe", errno);
    f.commit_reader = Fd(ends[0]);
    f.commit_writer = Fd(ends[1]);
    if (plan.kind == ContainerKind::Sandbox) return f;
    const std::string state = plan.device.attribute("state");
    f.state = Fd(::open(state.c_str(), O_RDWR | O_CLOEXEC));
    if (!f.state) {
        host::Error error = os_error("open", state, errno);
        error.hint = fmt::format(
            "allow it: chgrp remoteproc {0}/state {0}/firmware && chmod g+w {0}/state {0}/firmware "
            "(docs/remoteproc-runtime.md, rootless)",
            plan.device.folder);
        return std::unexpected(std::move(error).with_context("no access to the remote processor"));
    }
    f.recovery = Fd(::open(plan.device.attribute("recovery").c_str(), O_RDONLY | O_CLOEXEC));
    const std::string debug = settings.paths.debug(plan.device.node());
    f.debug = Fd(::open(debug.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    // The runner's control block lies where the device tree says that a model region is; nowhere else is memory
    // touched.
    const std::string region = settings.paths.device_tree() + "/reserved-memory/model@c0000000";
    if (plan.core != nullptr && plan.wishes.heartbeat_ms > 0 && ::access(region.c_str(), F_OK) == 0)
        f.memory = Fd(::open(settings.paths.below("/dev/mem").c_str(), O_RDONLY | O_SYNC | O_CLOEXEC));
    return f;
}

Result<pid_t> spawn_proxy(const Settings& settings, const Plan& plan, const ProxyFiles& files) {
    SpawnOptions options;
    ProxyOptions proxy;
    options.fds = {files.null.get(), files.null.get(), files.null.get()};
    if (settings.output) {
        const auto [in, out, err] = *settings.output;
        options.fds = {plan.wishes.console.empty() ? files.null.get() : in, out, err};
    }
    const auto give = [&](const Fd& fd) {
        if (!fd) return -1;
        options.fds.push_back(fd.get());
        return static_cast<int>(options.fds.size()) - 1;
    };
    proxy.events_fd = give(files.events);
    proxy.commit_fd = give(files.commit_reader);
    if (plan.kind == ContainerKind::Sandbox) {
        options.arguments = {std::string(kProgram),           "pause-container", "--events-fd",
                             std::to_string(proxy.events_fd), "--commit-fd",     std::to_string(proxy.commit_fd)};
    } else {
        proxy.device = plan.device.folder;
        proxy.state_fd = give(files.state);
        proxy.recovery_fd = give(files.recovery);
        proxy.debug_fd = give(files.debug);
        proxy.log_fd = give(files.log);
        proxy.memory_fd = give(files.memory);
        proxy.trace = plan.wishes.log;
        proxy.console = plan.wishes.console;
        proxy.retries = plan.wishes.start_retries;
        proxy.recovery_ms = plan.wishes.recovery_timeout_ms;
        proxy.heartbeat_ms = files.memory ? plan.wishes.heartbeat_ms : 0;
        options.arguments = proxy_arguments(proxy);
    }
    options.executable = "/proc/self/exe";
    options.environment = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
    options.clone_flags = plan.namespaces.clone_flags;
    for (const auto& space : plan.namespaces.join) {
        const int copy = ::fcntl(space.file.get(), F_DUPFD_CLOEXEC, 0);
        options.join.push_back({Fd(copy), space.type});
    }
    options.new_group = true;
    // Blocked from before the fork: a signal that comes early waits instead of being lost or ending the process.
    options.block = {SIGTERM, SIGINT, SIGUSR1, SIGCHLD};
    return host::with_context(spawn(options), "failed to start proxy process");
}

// The container's folder, reserved for this call; remnants of a create or delete that was killed are cleared away.
Result<FileLock> reserve(const Settings& settings, const std::string& id, const std::string& bundle) {
    TRY(make_folders(settings.state_root));
    std::string folder = settings.state_folder(id);
    if (is_elsewhere(settings, folder)) folder = settings.own_folder(id);
    for (int attempt = 0; attempt < 8; ++attempt) {
        if (::mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) return os_failure("mkdir", folder, errno);
        auto lock = FileLock::take(folder + "/" + std::string(kLockFileName), kCreateLockMs);
        if (!lock && lock.error().code == ErrorCode::NotFound) continue;  // a delete took the folder away meanwhile
        if (!lock) return std::unexpected(std::move(lock.error()));
        auto container = Container::load(settings, id);
        if (::access((folder + "/" + std::string(kStateFileName)).c_str(), F_OK) != 0) {
            if (!container) {
                // What a create that was killed at its very beginning wrote down must not be taken for this one's.
                for (const auto name : {kEventsFileName, kLogFileName, kDetailsFileName})
                    ::unlink((folder + "/" + std::string(name)).c_str());
                return lock;
            }
            // Its state was taken away from under it: nobody can name it any more but by this id.
            TRY(host::with_context(destroy(settings, *container, kRollbackGraceMs),
                                   "container " + id + " already exists"));
            continue;
        }
        const bool stale =
            !container ||
            (container->details && (container->details->deleting || container->details->boot != boot_id())) ||
            (container->state.status == "creating" && container->status() == Status::Stopped);
        // containerd creates an id of one of its namespaces once: this one's shim was killed, and its delete came too
        // early.
        const bool lost = container && container->details && !settings.namespace_name.empty() &&
                          container->details->namespace_name == settings.namespace_name &&
                          container->state.bundle == bundle;
        if (!stale && !lost) return host::failure(ErrorCode::InvalidState, "container {} already exists", id);
        log(LogLevel::Info, "clearing away what is left of an earlier container", {{"id", id}});
        if (container) {
            TRY(host::with_context(destroy(settings, *container, kRollbackGraceMs),
                                   "container " + id + " already exists"));
        } else {
            remove_remnants(folder);
        }
    }
    return host::failure(ErrorCode::Internal, "{} comes and goes", folder);
}

// Everything of a create that did not get to its end goes again.
class Rollback {
  public:
    Rollback(const Settings& settings, Container& container) : settings_(settings), container_(container) {}
    ~Rollback() {
        if (done_) return;
        if (container_.state.pid > 0) (void)destroy(settings_, container_, kRollbackGraceMs);
        remove_remnants(container_.folder);
    }
    Rollback(const Rollback&) = delete;
    Rollback& operator=(const Rollback&) = delete;
    void commit() { done_ = true; }

  private:
    const Settings& settings_;
    Container& container_;
    bool done_ = false;
};

Annotations state_annotations(const Plan& plan) {
    Annotations out = plan.spec.annotations;
    for (const auto key : {kDriverPathKey, kFirmwarePathKey, kStoredPathKey}) out.erase(std::string(key));
    if (plan.kind == ContainerKind::Sandbox) return out;
    out[std::string(kDriverPathKey)] = plan.device.folder;
    out[std::string(kFirmwarePathKey)] = plan.firmware.path;
    return out;
}

Result<void> write_pid_file(const std::string& path, pid_t pid) {
    const std::string context = "failed to write PID file";
    const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0644));
    if (!fd) return std::unexpected(os_error("open", path, errno).with_context(context));
    if (const auto written = write_all(fd.get(), std::to_string(pid)); !written)
        return std::unexpected(os_error("write", path, written.error()).with_context(context));
    return {};
}

}  // namespace

Result<void> create(const Settings& settings, const CreateOptions& options) {
    TRY(check_id(options.id));
    const std::string bundle = absolute_path(options.bundle);
    // Should our shim be killed, nobody would know the container that this goes on making.
    if (settings.caller_guards) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!options.console_socket.empty())
        return host::failure(ErrorCode::NotSupported, "--console-socket: firmware has no terminal; run without -t");
    TRY_ASSIGN(const Plan plan, make_plan(settings, bundle));
    TRY_ASSIGN(const FileLock lock, reserve(settings, options.id, bundle));
    sweep_now_and_then(settings);
    sweep_firmware(settings);

    Container container;
    container.folder = settings.state_folder(options.id);
    Rollback rollback(settings, container);
    container.state = {options.id, "creating", 0, bundle, state_annotations(plan)};
    TRY_ASSIGN(ProxyFiles files, open_files(settings, plan, container));
    TRY_ASSIGN(container.state.pid, spawn_proxy(settings, plan, files));
    files.commit_reader.reset();
    Details& details = container.details.emplace();
    details.start_time = process_start_time(container.state.pid).value_or(0);
    details.boot = boot_id();
    details.pid = container.state.pid;
    details.device = plan.device.folder;
    details.firmware_path = plan.firmware.path;
    details.bundle = bundle;
    details.namespace_name = settings.namespace_name;
    details.kind = plan.kind;
    details.root_folder = plan.root_folder;
    details.argument = plan.kind == ContainerKind::Firmware ? plan.spec.arguments->front() : "";
    details.firmware = plan.firmware.identity;
    details.created_ns = unix_ns_now();
    details.annotations = plan.spec.annotations;
    details.hooks = plan.spec.hooks;
    TRY(container.save_details());
    TRY(container.save_state());
    const std::string before = state_json(container.state, -1);
    for (const HookKind kind : {HookKind::Prestart, HookKind::CreateRuntime, HookKind::CreateContainer})
        TRY(run_hooks(details.hooks, kind, before));
    if (!options.pid_file.empty()) TRY(write_pid_file(options.pid_file, container.state.pid));
    container.state.status = "created";
    TRY(container.save_state());
    if (const auto committed = write_all(files.commit_writer.get(), "c"); !committed)
        return host::failure(ErrorCode::AccessFailed, "failed to start proxy process: it ended at once");
    rollback.commit();
    return {};
}

}  // namespace talpa::remoteproc
