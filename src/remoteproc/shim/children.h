// The shim's children: commands of the runtime that it runs, and the containers' processes, which become its children
// when the command that made them ends. One table, so that no status is lost or taken by another.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "remoteproc/shim/loop.h"

namespace talpa::remoteproc::shim {

/// How a process ended, as engines count: its status, or 128 plus the signal.
[[nodiscard]] int exit_status(int wait_status);

struct CommandResult {
    int status = -1;
    std::string error;   ///< what it wrote to standard error
    std::string output;  ///< and to standard output
};

class Children {
  public:
    using Ended = std::function<void(int wait_status)>;

    /// Takes over SIGCHLD and becomes the reaper of orphans.
    explicit Children(Loop& loop);
    /// Calls `ended` when that process has ended; at once if it was reaped already.
    void claim(pid_t pid, Ended ended);
    /// The same for a process that was started in this turn of the loop: what is known of its number is of an older
    /// one.
    void claim_new(pid_t pid, Ended ended);

    /// Runs a program; `extra_fds` become 3, 4, … of it. `done` is called from the loop.
    void run(const std::string& program, std::vector<std::string> arguments, std::vector<std::string> environment,
             const std::vector<int>& extra_fds, std::function<void(const CommandResult&)> done);

  private:
    void reap();
    Loop& loop_;
    Fd signal_fd_;
    std::map<pid_t, Ended> claimed_;
    std::map<pid_t, int> unclaimed_;  ///< ended before anybody asked
};

}  // namespace talpa::remoteproc::shim
