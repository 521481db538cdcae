// start: firmware into the kernel's folder, its name to the core, then the proxy is told to boot it. Returns when the
// core runs, or with the kernel's reason why not.
#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <csignal>

#include "base/host/sha256.h"
#include "remoteproc/oci/container.h"
#include "remoteproc/oci/holder.h"
#include "remoteproc/oci/hooks.h"
#include "remoteproc/oci/log.h"
#include "remoteproc/oci/operations.h"
#include "remoteproc/oci/proxy.h"
#include "remoteproc/sysfs/control.h"

namespace talpa::remoteproc {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kGiveBackMs = 5000;
constexpr int kCoreLockMs = 70000;  // another container's start may take its whole time-out

Result<void> check_startable(const Container& container) {
    switch (container.status()) {
        case Status::Created:
            return {};
        case Status::Running:
            return host::failure(ErrorCode::InvalidState,
                                 "cannot start container {}: it is running: remote processor is already running",
                                 container.state.id);
        case Status::Creating:
            return host::failure(ErrorCode::InvalidState, "cannot start container {}: it is being created",
                                 container.state.id);
        case Status::Stopped:
            break;
    }
    return host::failure(
        ErrorCode::InvalidState,
        "failed to start firmware: failed to send user defined signal 1: os: process already finished: "
        "cannot start a container that is stopped");
}

enum class Takeover : bool { No, Yes };

// Makes the core ready for new firmware, or says whom it belongs to. Yes: the running firmware is the wanted one.
Result<Takeover> prepare_core(const Settings& settings, const Container& container, const Device& device,
                              const Wishes& wishes, const FirmwareSource& source, const std::string& digest) {
    const std::string context = "failed to set firmware";
    auto state = read_state(device);
    if (!state)
        return std::unexpected(
            std::move(state.error()).with_context("pre-flight state check failed").with_context(context));
    const CoreOwners owners = settings.owners();
    const auto busy = busy_with(owners, device, container);
    const auto refuse_busy = [&](const std::string& who) {
        return host::failure(ErrorCode::InvalidState, "{}: remote processor is already running: busy: used by {}",
                             context, who);
    };
    // Also while it is offline: its start is between the owner's record and the kernel's boot.
    if (busy) return refuse_busy(*busy);
    const auto owner = owners.read(device);
    switch (*state) {
        case CoreState::Offline:
            return Takeover::No;
        case CoreState::Running:
            if (!owner)
                if (const auto stranger = stranger_on(settings, device)) return refuse_busy(*stranger);
            if (!owner || wishes.ownerless == Ownerless::Refuse) {
                host::Error error(ErrorCode::InvalidState, "remote processor is already running");
                error.hint = fmt::format("no container of this runtime started it; stop it by hand: echo stop > {}",
                                         device.attribute("state"));
                return std::unexpected(std::move(error).with_context(context));
            }
            if (wishes.ownerless == Ownerless::Adopt && !owner->sha256.empty() && owner->sha256 == digest) {
                log(LogLevel::Warn, "adopting a core whose container is gone", {{"was", owner->id}});
                return Takeover::Yes;
            }
            log(LogLevel::Warn, "stopping a core whose container is gone", {{"was", owner->id}});
            TRY(host::with_context(stop_core(device), context));
            return Takeover::No;
        case CoreState::Crashed:
            log(LogLevel::Warn, "recovering a crashed core before it gets new firmware");
            TRY(host::with_context(recover_and_stop(device, firmware_folder(settings.paths), source.path), context));
            return Takeover::No;
        case CoreState::Attached:
        case CoreState::Detached:
            if (!wishes.replace_attached) {
                host::Error error(ErrorCode::InvalidState, fmt::format("remote processor is {}", state_word(*state)));
                error.hint = "the boot loader started it; annotation remoteproc.attached=replace stops it first";
                return std::unexpected(
                    std::move(error).with_context("pre-flight state check failed").with_context(context));
            }
            if (*state == CoreState::Detached)
                if (const auto attached = write_attribute(device, "state", "start"); !attached)
                    return std::unexpected(
                        os_error("write", device.attribute("state"), attached.error()).with_context(context));
            TRY(host::with_context(stop_core(device), context));
            return Takeover::No;
        default:
            return host::failure(ErrorCode::InvalidState, "{}: remote processor is {}", context, state_word(*state));
    }
}

Result<FirmwareSource> open_again(const Container& container, const Wishes& wishes) {
    if (!container.details) {  // a container of the original: the path is all there is
        const std::string path = container.state.annotation(kFirmwarePathKey);
        const std::size_t slash = path.rfind('/');
        return open_firmware(path.substr(0, std::max<std::size_t>(slash, 1)), path.substr(slash + 1), wishes.max_size);
    }
    TRY_ASSIGN(auto source,
               open_firmware(container.details->root_folder, container.details->argument, wishes.max_size));
    if (source.identity != container.details->firmware)
        return host::failure(ErrorCode::InvalidState, "firmware {} was changed after create", printable(source.path));
    return source;
}

Result<std::string> digest_of(const FirmwareSource& source) {
    host::Sha256 hash;
    const FirmwareBytes bytes = source.bytes();
    std::uint8_t buffer[65536];
    for (std::uint64_t at = 0; at < bytes.size;) {
        const auto part =
            std::span(buffer).first(static_cast<std::size_t>(std::min<std::uint64_t>(sizeof buffer, bytes.size - at)));
        if (!bytes.read(at, part)) return os_failure("read", source.path, EIO);
        hash.update(std::string_view(reinterpret_cast<const char*>(part.data()), part.size()));
        at += part.size();
    }
    return hash.finish();
}

// Waits until the proxy notes what came of the boot.
Result<void> wait_for_boot(const Container& container, const PinnedProcess& process, const Device& device,
                           const Wishes& wishes) {
    const auto until = Clock::now() + std::chrono::milliseconds(wishes.start_timeout_ms);
    const Fd notify(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    ::inotify_add_watch(notify.get(), container.file(kEventsFileName).c_str(), IN_MODIFY);
    for (;;) {
        const bool alive = process.alive();  // before the record is read: its last words count
        const ProxyRecord record = container.record();
        if (record.started) return {};
        if (record.failed_errno) {
            host::Error error(ErrorCode::AccessFailed, record.failed_text);
            if (*record.failed_errno == ENOENT)
                error.hint = "the kernel did not find the file: is its firmware path the one that this runtime sees?";
            if (*record.failed_errno == EINVAL) error.hint = "the kernel refused the ELF; dmesg says why";
            return std::unexpected(std::move(error).with_context("failed to start firmware"));
        }
        if (!alive) {
            // The owner's record goes when this fails: the core must not come up after that.
            if (container.details && !record.exit_code) (void)stop_booting_core(device);
            return host::failure(ErrorCode::InvalidState,
                                 "failed to start firmware: failed to send user defined signal 1: os: process already "
                                 "finished");
        }
        // The original's proxy writes no notes: the core's state stands for them.
        if (!container.details && is_live(read_state(device).value_or(CoreState::Offline))) return {};
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
        if (left <= 0)
            return host::failure(ErrorCode::Timeout,
                                 "failed to start firmware: the core does not run after {} s (annotation "
                                 "remoteproc.start-timeout)",
                                 wishes.start_timeout_ms / 1000);
        pollfd waits[2] = {{notify.get(), POLLIN, 0}, {process.pidfd(), POLLIN, 0}};
        ::poll(waits, 2, static_cast<int>(std::min<long long>(left, container.details && notify ? 250 : 10)));
        char drained[4096];
        (void)!::read(notify.get(), drained, sizeof drained);
    }
}

// Users without a lock in common may start at the same moment: each writes its firmware's name, the kernel boots the
// last and counts the other starts. Those whose firmware it is not take theirs back.
Result<void> check_loaded(Container& container, const PinnedProcess& process, const Device& device) {
    const std::string stored = container.state.annotation(kStoredPathKey);
    const auto loaded = read_attribute(device, "firmware");
    if (!loaded || *loaded == stored.substr(stored.rfind('/') + 1)) return {};
    process.signal(SIGUSR1, kGiveBackValue);
    (void)process.wait_exit(kGiveBackMs);
    container.state.status = "stopped";
    container.state.annotations.erase(std::string(kStoredPathKey));
    (void)container.save_state();
    return host::failure(
        ErrorCode::InvalidState,
        "failed to set firmware: remote processor is already running: busy: another start took it at the "
        "same moment, it runs {}",
        printable(*loaded));
}

// The one that stops the core should the proxy be killed.
Result<void> spawn_guard(const Settings& settings, const Container& container, const PinnedProcess& process,
                         const Device& device) {
    if (settings.caller_guards || process.pidfd() < 0) return {};
    const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    const Fd state(::open(device.attribute("state").c_str(), O_RDWR | O_CLOEXEC));
    const Fd events(
        ::open(container.file(kEventsFileName).c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!null || !state || !events) return os_failure("open", container.folder, errno);
    SpawnOptions options;
    options.executable = "/proc/self/exe";
    options.fds = {null.get(), null.get(), null.get(), process.pidfd(), state.get(), events.get()};
    options.arguments = guard_arguments({3, 4, 5, process.pid(), device.folder, settings.run_folder});
    options.environment = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
    options.folder = "/";
    options.new_session = true;
    options.block = {SIGTERM, SIGINT, SIGUSR1, SIGCHLD};
    TRY(spawn(options));
    return {};
}

// Takes back what start did to the outside when it fails.
class Undo {
  public:
    Undo(const Settings& settings, const Device& device) : settings_(settings), device_(device) {}
    ~Undo() {
        if (done_) return;
        if (!stored.empty()) (void)remove_firmware(stored, settings_.index());
        if (!recovery.empty()) (void)write_attribute(device_, "recovery", recovery);
        // A core that was to be adopted runs on: whose it was must stay known.
        if (owner && owner_before)
            (void)settings_.owners().write(device_, *owner_before);
        else if (owner)
            settings_.owners().clear(device_, *owner);
    }
    Undo(const Undo&) = delete;
    Undo& operator=(const Undo&) = delete;
    void commit() { done_ = true; }

    std::string stored, recovery;
    std::optional<Owner> owner, owner_before;

  private:
    const Settings& settings_;
    const Device& device_;
    bool done_ = false;
};

Result<void> set_recovery(const Device& device, const Wishes& wishes, Undo& undo) {
    if (wishes.recovery == Recovery::Keep) return {};
    const std::string wanted = wishes.recovery == Recovery::Enabled ? "enabled" : "disabled";
    TRY_ASSIGN(const std::string now, read_attribute(device, "recovery"));
    if (now == wanted) return {};
    if (const auto written = write_attribute(device, "recovery", wanted); !written)
        return os_failure("write", device.attribute("recovery"), written.error());
    undo.recovery = now;
    return {};
}

Result<void> start_sandbox(Container& container, const PinnedProcess& process) {
    TRY(run_hooks(container.details->hooks, HookKind::StartContainer, state_json(container.current_state(), -1)));
    process.signal(SIGUSR1);
    container.state.status = "running";
    TRY(container.save_state());
    run_hooks_to_the_end(container.details->hooks, HookKind::Poststart, state_json(container.state, -1));
    return {};
}

Result<void> start_firmware(const Settings& settings, Container& container, const PinnedProcess& process) {
    const Device device = container.named_device();
    TRY_ASSIGN(const Wishes wishes, read_wishes(container.details ? container.details->annotations : Annotations{},
                                                nullptr, settings.runc_style));
    const CoreOwners owners = settings.owners();
    TRY_ASSIGN(const FileLock core_lock, owners.lock(device, kCoreLockMs));
    // While this call waited for the core the container may have been stopped.
    TRY(check_startable(container));
    TRY_ASSIGN(const FirmwareSource source, open_again(container, wishes));
    TRY_ASSIGN(const std::string digest, digest_of(source));
    if (!wishes.sha256.empty() && digest != wishes.sha256)
        return host::failure(ErrorCode::InvalidProgram,
                             "firmware {} has SHA-256 {}, annotation remoteproc.sha256 wants {}",
                             printable(source.path), digest, wishes.sha256);
    TRY_ASSIGN(const Takeover takeover, prepare_core(settings, container, device, wishes, source, digest));

    Undo undo(settings, device);
    const CoreFacts* core = known_core(settings.paths, device);
    TRY(host::with_context(check_firmware(source.bytes(), core, wishes.elf),
                           "firmware " + printable(source.path) + " is refused"));
    const std::string folder = firmware_folder(settings.paths);
    if (takeover == Takeover::No) {
        TRY_ASSIGN(const StoredFirmware stored, store_firmware(source, folder, settings.index(), container.folder));
        undo.stored = stored.path;
        if (stored.sha256 != digest)
            return host::failure(ErrorCode::InvalidState, "firmware {} was changed while it was read",
                                 printable(source.path));
        const std::string name = stored.path.substr(stored.path.rfind('/') + 1);
        if (const auto written = write_attribute(device, "firmware", name); !written) {
            host::Error error = os_error("write", device.attribute("firmware"), written.error());
            if (written.error() == EACCES || written.error() == EPERM)
                error.hint = fmt::format("allow it: chmod g+w {}", device.attribute("firmware"));
            if (written.error() == EBUSY) error.hint = "another start took the core at the same moment";
            return std::unexpected(
                std::move(error).with_context("failed to set firmware " + name).with_context("failed to set firmware"));
        }
        container.state.annotations[std::string(kStoredPathKey)] = stored.path;
    } else if (const auto before = owners.read(device)) {
        container.state.annotations[std::string(kStoredPathKey)] = before->firmware;
        (void)settings.index().add(before->firmware, container.folder);
        undo.owner_before = before;
    }
    TRY(host::with_context(set_recovery(device, wishes, undo), "failed to set recovery"));
    if (container.details) container.details->recovery_before = undo.recovery;
    Owner owner{container.state.id, container.folder, container.state.annotation(kStoredPathKey),   digest,
                boot_id(),          process.pid(),    process_start_time(process.pid()).value_or(0)};
    TRY(host::with_context(owners.write(device, owner), "failed to note the core's owner"));
    undo.owner = owner;
    // The path goes to disk before the boot: whoever is killed from here on, a delete finds the copy.
    TRY(container.save_state());
    TRY(container.save_details());
    if (container.details)
        TRY(run_hooks(container.details->hooks, HookKind::StartContainer, state_json(container.current_state(), -1)));
    TRY(spawn_guard(settings, container, process, device));
    if (const int error = process.signal(SIGUSR1, takeover == Takeover::Yes ? kAdoptValue : 0); error != 0)
        return host::failure(ErrorCode::InvalidState,
                             "failed to start firmware: failed to send user defined signal 1: {}",
                             error == ESRCH ? "os: process already finished" : errno_text(error));
    if (auto booted = wait_for_boot(container, process, device, wishes); !booted) {
        const ErrorCode code = booted.error().code;
        if (code == ErrorCode::Timeout) {
            // The kernel is still at it: end the container, and do not leave a core that comes up later.
            process.signal(SIGTERM);
            undo.commit();
        }
        container.state.status = "stopped";
        if (code != ErrorCode::Timeout) container.state.annotations.erase(std::string(kStoredPathKey));
        (void)container.save_state();
        return booted;
    }
    if (takeover == Takeover::No && container.details) TRY(check_loaded(container, process, device));
    undo.commit();
    container.state.status = "running";
    TRY(container.save_state());
    if (container.details)
        run_hooks_to_the_end(container.details->hooks, HookKind::Poststart, state_json(container.state, -1));
    return {};
}

}  // namespace

Result<void> start(const Settings& settings, const std::string& id) {
    TRY_ASSIGN(Container container, Container::load(settings, id));
    TRY(check_startable(container));
    const auto process = container.process();
    if (!process) return check_startable(container);
    auto started =
        container.sandbox() ? start_sandbox(container, *process) : start_firmware(settings, container, *process);
    // Those that call a runtime as runc expect the container's process to be gone after a start that failed: Docker
    // waits for that and asks for nothing else. Others may try again.
    if (!started && settings.runc_style && !container.record().started) process->signal(SIGTERM);
    return started;
}

}  // namespace talpa::remoteproc
