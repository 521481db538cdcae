// Other processes, named so that a recycled pid is never mistaken for the one that was meant: pid, start time and boot.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "remoteproc/sys/os_error.h"

namespace talpa::remoteproc {

/// What a file of /proc holds; empty if it cannot be read.
[[nodiscard]] std::string read_proc(const std::string& path, std::size_t limit_bytes = 65536);

/// Start of the process in clock ticks since boot (field 22 of /proc/PID/stat), or nothing if it is gone or a zombie.
[[nodiscard]] std::optional<std::uint64_t> process_start_time(pid_t pid);
/// Identifier of this boot of the machine; empty where /proc does not tell.
[[nodiscard]] const std::string& boot_id();
/// Arguments of a process, separated by NUL as the kernel keeps them; empty if it is gone.
[[nodiscard]] std::string process_arguments(pid_t pid);

/// A process held fast by a pidfd, so that a signal cannot reach another one that got its number meanwhile.
class PinnedProcess {
  public:
    /// `start_time` 0: not known. Nothing when no such process lives (a zombie does not).
    [[nodiscard]] static std::optional<PinnedProcess> pin(pid_t pid, std::uint64_t start_time);

    [[nodiscard]] pid_t pid() const { return pid_; }
    /// -1 on kernels without pidfd.
    [[nodiscard]] int pidfd() const { return pidfd_.get(); }
    [[nodiscard]] bool alive() const;
    /// Sends a signal; `value` arrives as the signal's integer. Returns 0 or an errno.
    int signal(int number, int value = 0) const;
    /// Whether the process ended within the time.
    [[nodiscard]] bool wait_exit(int timeout_ms) const;

  private:
    pid_t pid_ = -1;
    std::uint64_t start_time_ = 0;
    Fd pidfd_;
};

/// A namespace to enter: an open /proc/PID/ns/X (or the like) and its CLONE_NEW* type.
struct JoinedNamespace {
    Fd file;
    int type = 0;
};

/// Not base/host/program.h: the child is made in new namespaces, keeps exactly the descriptors that are listed and may
/// have signals blocked from its first moment, and failures have the words that users of the original runtime match.
struct SpawnOptions {
    std::vector<std::string> arguments;    ///< [0] is shown by ps; what runs is `executable`
    std::string executable;                ///< path, or "/proc/self/exe"
    std::vector<std::string> environment;  ///< NAME=VALUE
    std::vector<int> fds;                  ///< become 0, 1, 2, … of the child; all others are closed
    std::uint64_t clone_flags = 0;         ///< CLONE_NEW*
    std::vector<JoinedNamespace> join;
    std::string folder;           ///< working directory; empty: as it is
    bool new_group = false;       ///< its own process group (pgid = pid)
    bool new_session = false;     ///< setsid
    std::vector<int> block = {};  ///< signals that stay blocked in the child, also while it starts
};

/// Starts a program; returns its pid, as the caller's pid namespace counts. An error of the exec itself is returned
/// here. The namespaces exist when this returns.
[[nodiscard]] Result<pid_t> spawn(const SpawnOptions& options);

}  // namespace talpa::remoteproc
