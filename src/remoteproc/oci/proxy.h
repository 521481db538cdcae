// The container's process: waits to be told to start, boots the core, watches it, and stops it. Also a pod's pause
// process, and the guard that stops a core whose proxy was killed. All three run with the file descriptors they were
// given and touch no path but trace buffers and a tty. (remoteproc-runtime, section 6)
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace talpa::remoteproc {

inline constexpr int kAdoptValue = 1;  ///< with SIGUSR1: the core runs already, take it over
inline constexpr int kGiveBackValue =
    2;  ///< the same later: its start was counted, but the core runs another's firmware

struct ProxyOptions {
    std::string device;    ///< /sys/class/remoteproc/remoteprocN
    int events_fd = -1;    ///< where it notes what happens; -1: nowhere
    int commit_fd = -1;    ///< one byte comes when create is done; its end without one: create gave up
    int state_fd = -1;     ///< the device's `state`, open for reading and writing
    int recovery_fd = -1;  ///< the device's `recovery`, open for reading
    int debug_fd = -1;     ///< the device's folder in debugfs
    int log_fd = -1;       ///< the container's own log file
    int memory_fd = -1;    ///< /dev/mem, to watch the runner's heartbeat
    std::string trace = "auto";
    std::string console;
    int retries = 0;
    int recovery_ms = 10000;
    int heartbeat_ms = 0;
};

[[nodiscard]] std::vector<std::string> proxy_arguments(const ProxyOptions& options);

/// Returns the exit code.
[[nodiscard]] int run_proxy(ProxyOptions options);
/// Waits for TERM or INT and reaps.
[[nodiscard]] int run_pause(int events_fd, int commit_fd);

struct GuardOptions {
    int process_fd = -1;  ///< pidfd of the proxy
    int state_fd = -1;    ///< of the device
    int events_fd = -1;   ///< the proxy's notes, for reading and appending
    pid_t process = 0;    ///< the proxy's pid, as the owner's record has it
    std::string device;   ///< /sys/class/remoteproc/remoteprocN
    std::string run_folder;
};
[[nodiscard]] std::vector<std::string> guard_arguments(const GuardOptions& options);
/// Waits for the proxy's end. Where that came without a note, it stops the core, unless another container has it by
/// now.
[[nodiscard]] int run_guard(const GuardOptions& options);

}  // namespace talpa::remoteproc
