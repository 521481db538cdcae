// Figures of a process in the form of a cgroup's, which is what containerd's callers decode.
// (github.com/containerd/cgroups: messages Metrics of v1 and v2)
#pragma once

#include <sys/types.h>

#include <string>

namespace talpa::remoteproc::shim {

/// A google.protobuf.Any; zeros where the process is gone.
[[nodiscard]] std::string metrics(pid_t pid);

}  // namespace talpa::remoteproc::shim
