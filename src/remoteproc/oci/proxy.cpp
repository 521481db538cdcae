#include "remoteproc/oci/proxy.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <optional>

#include "remoteproc/oci/core_file.h"
#include "remoteproc/oci/firmware_view.h"
#include "remoteproc/oci/privileges.h"
#include "remoteproc/oci/settings.h"

namespace talpa::remoteproc {
namespace {

using Clock = std::chrono::steady_clock;

// Adaptive: quick while things happen, slow on a board that runs from a battery. (remoteproc-runtime, section 20-6)
constexpr int kQuickMs = 50, kSlowMs = 500, kQuickForMs = 5000;
constexpr int kStateSettlesMs = 5000;  ///< between the kernel's "started" and a state that reads so
constexpr int kConfirmStops = 3;       ///< readings of "offline" before it counts as somebody else's stop

Fd signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int number : {SIGTERM, SIGINT, SIGUSR1, SIGCHLD}) sigaddset(&set, number);
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
    return Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

struct Arrived {
    int number = 0;
    int value = 0;
};

std::optional<Arrived> next_signal(int fd) {
    signalfd_siginfo info;
    if (::read(fd, &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return std::nullopt;
    return Arrived{static_cast<int>(info.ssi_signo), info.ssi_code == SI_QUEUE ? info.ssi_int : 0};
}

bool is_stop(int number) {
    return number == SIGTERM || number == SIGINT;
}

// A pipe that nobody reads any more must not hold the watch over the core.
void complain(const std::string& text) {
    pollfd room{2, POLLOUT, 0};
    if (::poll(&room, 1, 0) > 0 && (room.revents & POLLOUT) != 0) (void)write_all(2, text + "\n");
}

// The first phase: nothing touches the core. Returns the signal that ended it; number 0 where create gave up.
Arrived wait_for_start(int signal_fd, int commit_fd) {
    std::optional<Arrived> early;
    for (;;) {
        pollfd waits[2] = {{signal_fd, POLLIN, 0}, {commit_fd, POLLIN, 0}};
        ::poll(waits, 2, -1);
        if (commit_fd >= 0 && waits[1].revents != 0) {
            char byte;
            if (::read(commit_fd, &byte, 1) != 1) return {};
            commit_fd = -1;
        }
        while (const auto arrived = next_signal(signal_fd)) {
            if (arrived->number == SIGCHLD) {
                while (::waitpid(-1, nullptr, WNOHANG) > 0) {
                }
                continue;
            }
            early = arrived;
            if (is_stop(arrived->number)) return *arrived;
        }
        if (early && commit_fd < 0) return *early;
    }
}

class Proxy {
  public:
    explicit Proxy(const ProxyOptions& options)
        : options_(options),
          core_(options.state_fd),
          output_(options.log_fd),
          traces_(options.debug_fd, options.trace),
          console_(options.console) {}

    int run(int signal_fd) {
        const Arrived start = wait_for_start(signal_fd, options_.commit_fd);
        if (start.number == 0) return kExitLost;
        if (is_stop(start.number)) return leave(kExitStopped, "stopped before it was started");
        if (start.value != kAdoptValue)
            if (const int error = boot(); error != 0) return kExitLost;
        note_event(options_.events_fd, start.value == kAdoptValue ? "started adopted" : "started");
        release_idle_pages();
        Heartbeat heartbeat(options_.memory_fd, options_.heartbeat_ms);
        return watch(signal_fd, heartbeat);
    }

  private:
    int leave(int code, const std::string& reason) {
        output_.finish(1000);
        note_event(options_.events_fd, fmt::format("exit {} {}", code, reason));
        return code;
    }

    int failed(int error, const std::string& text) {
        complain("Error: failed to start remoteproc: " + text);
        note_event(options_.events_fd, fmt::format("failed {} {}", error, text));
        (void)leave(kExitLost, "the start failed");
        return error;
    }

    int boot() {
        const std::string file = options_.device + "/state";
        const auto before = core_.read();
        if (before.state == CoreState::Running) return failed(EBUSY, "remote processor is already running");
        int error = 0;
        for (int attempt = 0; attempt <= options_.retries; ++attempt) {
            error = core_.write("start");
            if (error == 0) break;
            const timespec wait{0, 100'000'000};
            if (attempt < options_.retries) ::nanosleep(&wait, nullptr);
        }
        if (error != 0) return failed(error, error_line(os_error("write", file, error)));
        const auto until = Clock::now() + std::chrono::milliseconds(kStateSettlesMs);
        CoreFile::Reading now;
        for (;;) {
            now = core_.read();
            if (now.state && is_live(*now.state)) return 0;
            // A crash right after the boot is for the watch to tell.
            if (now.state == CoreState::Crashed || Clock::now() >= until) break;
            const timespec wait{0, 10'000'000};
            ::nanosleep(&wait, nullptr);
        }
        if (now.state == CoreState::Crashed) return 0;
        return failed(EIO,
                      fmt::format("the kernel took the start, but {} reads {}; its count of starts may be off: unbind "
                                  "and bind the driver",
                                  file, now.state ? state_word(*now.state) : "an unknown word"));
    }

    int stop_on_request() {
        (void)traces_.poll(output_);
        if (const int error = core_.stop(); error != 0) {
            const std::string text = error_line(os_error("write", options_.device + "/state", error));
            complain("failed to stop remoteproc: " + text);
            return leave(kExitLost, "the stop failed: " + text);
        }
        return leave(kExitStopped, "stopped on request");
    }

    [[nodiscard]] bool kernel_recovers() const {
        char text[32];
        const ssize_t n = options_.recovery_fd < 0 ? -1 : ::pread(options_.recovery_fd, text, sizeof text, 0);
        return n > 0 && std::string_view(text, static_cast<std::size_t>(n)).starts_with("enabled");
    }

    // What a reading means; an exit code ends the container.
    std::optional<int> judge(const CoreFile::Reading& now) {
        if (is_gone(now.error) || now.state == CoreState::Deleted) {
            complain("remoteproc not running, current state: deleted");
            return leave(kExitLost, "the device is gone");
        }
        if (now.error != 0 || !now.state) {
            if (!odd_) complain("can't read the state of the remote processor");
            odd_ = true;
            return std::nullopt;
        }
        odd_ = false;
        if (is_live(*now.state) || *now.state == CoreState::Suspended) {
            if (crashed_since_) {
                note_incident(options_.events_fd, "recovered");
                complain("remote processor recovered");
            }
            crashed_since_.reset();
            offline_seen_ = 0;
            return std::nullopt;
        }
        if (*now.state == CoreState::Crashed && !crashed_since_) {
            crashed_since_ = Clock::now();
            note_incident(options_.events_fd, "crashed");
            complain("remoteproc not running, current state: crashed");
            (void)traces_.poll(output_);
        }
        if (crashed_since_) {
            // On its way up again the kernel shows "offline" for a moment.
            const bool late = Clock::now() - *crashed_since_ > std::chrono::milliseconds(options_.recovery_ms);
            if (kernel_recovers() && !late) return std::nullopt;
            if (!kernel_recovers() && *now.state == CoreState::Offline && ++offline_seen_ < kConfirmStops)
                return std::nullopt;
            (void)core_.stop();
            return leave(kExitCrashed, "the firmware crashed");
        }
        if (++offline_seen_ < kConfirmStops) return std::nullopt;
        complain(fmt::format("remoteproc not running, current state: {}", state_word(*now.state)));
        return leave(kExitLost, "stopped by somebody else");
    }

    int watch(int signal_fd, Heartbeat& heartbeat) {
        auto quick_until = Clock::now() + std::chrono::milliseconds(kQuickForMs);
        bool quick = true;
        for (;;) {
            bool fresh = traces_.poll(output_);
            fresh = console_.poll(output_) || fresh;
            output_.flush();
            if (const auto code = judge(core_.read())) return *code;
            if (const auto complaint = heartbeat.complaint(); complaint && !crashed_since_) {
                complain(*complaint);
                note_event(options_.events_fd, "hung " + *complaint);
                (void)core_.stop();
                return leave(kExitHung, *complaint);
            }
            if (fresh || crashed_since_ || offline_seen_ > 0)
                quick_until = std::max(quick_until, Clock::now() + std::chrono::milliseconds(1000));
            pollfd wait{signal_fd, POLLIN, 0};
            const bool still_quick = Clock::now() < quick_until;
            if (quick && !still_quick) release_idle_pages();
            quick = still_quick;
            ::poll(&wait, 1, quick ? kQuickMs : kSlowMs);
            while (const auto arrived = next_signal(signal_fd)) {
                if (is_stop(arrived->number)) return stop_on_request();
                if (arrived->number == SIGUSR1 && arrived->value == kGiveBackValue) {
                    (void)core_.write("stop");  // once: the other's start counts on
                    return leave(kExitLost, "another start took the core at the same moment");
                }
                if (arrived->number == SIGCHLD)
                    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
                    }
            }
        }
    }

    ProxyOptions options_;
    CoreFile core_;
    Output output_;
    TraceReader traces_;
    Console console_;
    bool odd_ = false;
    int offline_seen_ = 0;
    std::optional<Clock::time_point> crashed_since_;
};

}  // namespace

std::vector<std::string> proxy_arguments(const ProxyOptions& o) {
    std::vector<std::string> out{std::string(kProgram), "proxy", "--device-path", o.device};
    const auto number = [&](const char* flag, int value, int unset) {
        if (value == unset) return;
        out.emplace_back(flag);
        out.push_back(std::to_string(value));
    };
    number("--events-fd", o.events_fd, -1);
    number("--commit-fd", o.commit_fd, -1);
    number("--state-fd", o.state_fd, -1);
    number("--recovery-fd", o.recovery_fd, -1);
    number("--debug-fd", o.debug_fd, -1);
    number("--log-fd", o.log_fd, -1);
    number("--memory-fd", o.memory_fd, -1);
    number("--retries", o.retries, 0);
    number("--recovery-ms", o.recovery_ms, 10000);
    number("--heartbeat-ms", o.heartbeat_ms, 0);
    out.insert(out.end(), {"--trace", o.trace});
    if (!o.console.empty()) out.insert(out.end(), {"--console", o.console});
    return out;
}

int run_proxy(ProxyOptions options) {
    const Fd signal_fd = signals();
    ::prctl(PR_SET_NAME, "rproc-proxy");
    Fd opened;
    if (options.state_fd < 0) {  // called by hand, or by the original's create
        opened = Fd(::open((options.device + "/state").c_str(), O_RDWR | O_CLOEXEC));
        options.state_fd = opened.get();
        if (!opened) {
            complain("Error: failed to start remoteproc: " +
                     error_line(os_error("open", options.device + "/state", errno)));
            return kExitLost;
        }
    }
    drop_privileges();
    note_event(options.events_fd, "ready");
    release_idle_pages();
    return Proxy(options).run(signal_fd.get());
}

int run_pause(int events_fd, int commit_fd) {
    const Fd signal_fd = signals();
    ::prctl(PR_SET_NAME, "rproc-pause");
    drop_privileges();
    note_event(events_fd, "ready");
    release_idle_pages();
    Arrived arrived = wait_for_start(signal_fd.get(), commit_fd);
    if (arrived.number == 0) return kExitLost;
    if (arrived.number == SIGUSR1) {
        note_event(events_fd, "started");
        while (!is_stop(arrived.number)) arrived = wait_for_start(signal_fd.get(), -1);
    }
    note_event(events_fd, "exit 0 stopped on request");
    return kExitStopped;
}

std::vector<std::string> guard_arguments(const GuardOptions& o) {
    return {std::string(kProgram), "guard",
            "--process-fd",        std::to_string(o.process_fd),
            "--state-fd",          std::to_string(o.state_fd),
            "--events-fd",         std::to_string(o.events_fd),
            "--process",           std::to_string(o.process),
            "--device-path",       o.device,
            "--run-folder",        o.run_folder};
}

int run_guard(const GuardOptions& options) {
    const Fd signal_fd = signals();
    ::prctl(PR_SET_NAME, "rproc-guard");
    drop_capabilities();
    release_idle_pages();
    pollfd wait{options.process_fd, POLLIN, 0};
    while (::poll(&wait, 1, -1) <= 0) {
    }
    // A proxy that ended by itself wrote down why, and left the core as it should be.
    const auto record = read_fd(options.events_fd, 1 << 20);
    if (record && record->find(" exit ") != std::string::npos) return 0;
    const CoreOwners owners(options.run_folder);
    const Device device{options.device, {}};
    const auto lock = owners.lock(device, 3000);
    const auto owner = owners.read(device);
    if (!owner || owner->pid != options.process) return 0;
    const CoreFile core(options.state_fd);
    // In the middle of its boot it reads offline; a write waits for the end of that.
    if (core.read().state == CoreState::Offline) (void)core.write("stop");
    const int error = core.stop();
    if (error == 0) owners.clear(device, *owner);
    note_event(options.events_fd, error == 0 ? fmt::format("exit {} the proxy was killed, the guard stopped the core",
                                                           static_cast<int>(kExitKilled))
                                             : fmt::format("guard-failed {}", error));
    return error == 0 ? 0 : 1;
}

}  // namespace talpa::remoteproc
