// state, kill and delete.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <csignal>

#include "remoteproc/oci/container.h"
#include "remoteproc/oci/hooks.h"
#include "remoteproc/oci/log.h"
#include "remoteproc/oci/operations.h"

namespace talpa::remoteproc {
namespace {

struct SignalName {
    std::string_view name, number;
    int value;
    std::string_view spoken;  ///< as the original's errors say it
};
constexpr std::array<SignalName, 3> kSignals{{
    {"TERM", "15", SIGTERM, "terminated"},
    {"KILL", "9", SIGKILL, "killed"},
    {"INT", "2", SIGINT, "interrupt"},
}};

constexpr int kKillWaitMs =
    1000;  ///< how long kill TERM waits to see the container stopped; the stop goes on without it
constexpr int kForceGraceMs = 1000;  ///< what delete --force gives the proxy before it stops the core itself
constexpr int kDeleteLockMs = 5000;

const SignalName* find_signal(std::string_view text) {
    std::string name(text);
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    for (const SignalName& s : kSignals)
        if (name == s.name || name == s.number || name == "SIG" + std::string(s.name)) return &s;
    return nullptr;
}

Result<void> finished(const SignalName& signal) {
    return host::failure(ErrorCode::NotFound, "failed to send signal: failed to send {}: os: process already finished",
                         signal.spoken);
}

// The status in the file is for the original, should it take over; ours is derived.
void note_stopped(Container& container) {
    container.state.status = "stopped";
    (void)container.save_state();
}

}  // namespace

Result<std::string> state(const Settings& settings, const std::string& id) {
    TRY_ASSIGN(const Container container, Container::load(settings, id));
    return state_json(container.current_state(), -1);
}

Result<void> kill(const Settings& settings, const std::string& id, const std::string& signal_name) {
    const SignalName* signal = find_signal(signal_name);
    if (signal == nullptr)
        return host::failure(ErrorCode::InvalidArgument,
                             "unsupported signal: {} (supported: TERM (15), KILL (9), INT (2))",
                             printable(signal_name));
    TRY_ASSIGN(Container container, Container::load(settings, id));
    const auto process = container.process();
    if (!process) {
        // The proxy may be gone while its core still runs: then a kill has something to do all the same.
        TRY(stop_owned_core(settings, container, 2000));
        return finished(*signal);
    }
    Result<void> stopped;
    if (signal->value == SIGKILL) stopped = stop_owned_core(settings, container, 500);
    if (const int error = process->signal(signal->value); error == ESRCH)
        return finished(*signal);
    else if (error != 0)
        return host::failure(ErrorCode::AccessFailed, "failed to send signal: failed to send {}: {}", signal->spoken,
                             errno_text(error));
    if (!process->wait_exit(kKillWaitMs)) return {};
    // What a start that was under way has booted since.
    if (signal->value == SIGKILL) stopped = stop_owned_core(settings, container, 2000);
    note_stopped(container);
    return stopped;
}

namespace {

Result<void> remove_container(const Settings& settings, const std::string& id, Force force) {
    const bool forced = force == Force::Yes;
    TRY(check_id(id));
    if (auto known = Container::load(settings, id); !known) {
        // Nothing says what it was, so nothing of it can run: only its name is in the way.
        const std::string folder = settings.state_folder(id);
        struct stat info;
        if (forced && !is_elsewhere(settings, folder) && ::lstat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
            info.st_uid == ::geteuid() && FileLock::take(folder + "/" + std::string(kLockFileName), kDeleteLockMs))
            remove_remnants(folder);
        return std::unexpected(std::move(known.error()));
    }
    const auto lock = FileLock::take(settings.state_folder(id) + "/" + std::string(kLockFileName), kDeleteLockMs);
    if (!lock && !forced) return std::unexpected(lock.error());
    TRY_ASSIGN(Container container, Container::load(settings, id));
    if (container.status() == Status::Running && !forced)
        return host::failure(ErrorCode::InvalidState, "cannot delete running container {}", id);
    StateFile last = container.state;
    last.status = "stopped";
    TRY(destroy(settings, container, kForceGraceMs));
    if (container.details) run_hooks_to_the_end(container.details->hooks, HookKind::Poststop, state_json(last, -1));
    return {};
}

}  // namespace

Result<void> remove(const Settings& settings, const std::string& id, Force force) {
    auto removed = remove_container(settings, id, force);
    if (removed || force == Force::No) return removed;
    // Engines rely on success here; what went wrong is in the log.
    log(LogLevel::Error, error_line(removed.error()), {{"id", printable(id)}});
    return {};
}

}  // namespace talpa::remoteproc
