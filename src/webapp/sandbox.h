// What the part that talks to the network gives up once it has everything open: user and group, capabilities, the file
// system and new outgoing connections (Landlock), all system calls but those it uses (seccomp). What the kernel has not
// is left out and said. (Linux: credentials(7), capabilities(7), landlock(7), seccomp(2))
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/host/error.h"

namespace talpa::webapp {

struct SandboxOptions {
    bool enabled = true;
    std::uint32_t user = 65534, group = 65534;  ///< to become, where this process may
};

/// One measure, and how it went.
struct SandboxStep {
    std::string what;  ///< "user", "capabilities", "landlock", "seccomp"
    bool applied = false;
    std::string detail;  ///< "uid 65534, gid 65534", "not in this kernel"
};

/// Applies what can be, for the calling thread and all that it starts later: call it while there is one thread only.
[[nodiscard]] std::vector<SandboxStep> enter_sandbox(const SandboxOptions& options);

}  // namespace talpa::webapp
