// Starting another program: its streams, folder, environment and signals, and why it did not begin. Who needs
// namespaces or descriptors beyond the three streams has its own: remoteproc/sys/process.h, board/host/exec.cpp.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/host/error.h"

namespace talpa::host {

inline constexpr int kOurs = -1;     ///< a stream as we have it
inline constexpr int kNothing = -2;  ///< /dev/null

struct Program {
    std::vector<std::string> arguments;  ///< [0] is looked up in PATH if it has no slash
    int in = kNothing, out = kOurs, err = kOurs;
    std::vector<std::pair<std::string, std::string>> environment{};  ///< on top of ours
    std::filesystem::path folder{};                                  ///< empty: ours
    bool own_group = false;
    /// Gets SIGTERM when the thread that started it ends, however it ends.
    bool ends_with_us = false;
};

/// Its process; no signal is blocked in it, and SIGPIPE has its default again. It has become the program when this
/// returns. Descriptors but the streams are inherited unless they close on exec. Errors: NotFound, there is no such
/// program; AccessFailed, it or its folder cannot be had; OutOfResources.
[[nodiscard]] Result<pid_t> start_program(const Program& program);

inline constexpr int kEndUnknown = 127;
/// Waits for the end of a child: its exit status, 128 + the signal that ended it, or kEndUnknown where somebody else
/// has waited for it.
[[nodiscard]] int wait_for_end(pid_t child);
/// The same of what waitpid(2) gave.
[[nodiscard]] int exit_code_of(int wait_status);

}  // namespace talpa::host
