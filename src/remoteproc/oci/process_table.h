// What /proc says of a container's process: its use of processor and memory, and its line in `ps`.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace talpa::remoteproc {

struct ProcessUse {
    std::uint64_t cpu_ns = 0, memory_bytes = 0;
};
/// All zero for a process that is gone.
[[nodiscard]] ProcessUse use_of(pid_t pid);

/// The columns of `ps -ef`, which is what runc prints.
inline constexpr std::string_view kPsHeader = "UID          PID    PPID  C STIME TTY          TIME CMD\n";
/// Empty for a process that is gone.
[[nodiscard]] std::string ps_line(pid_t pid);

}  // namespace talpa::remoteproc
