// The container's output as containerd wants it: FIFOs (a plain path or fifo://), files (file://), or a program that
// reads it (binary://). The descriptors go to the container's process; the shim copies nothing.
#pragma once

#include <string>
#include <vector>

#include "remoteproc/sys/os_error.h"

namespace talpa::remoteproc::shim {

struct Stdio {
    Fd in, out, err;
    std::vector<pid_t> loggers;  ///< programs of binary://, which end with the output
};

/// Opens what the three URIs name; empty ones become /dev/null. `ns` and `id` are told to a binary:// logger.
[[nodiscard]] Result<Stdio> open_stdio(const std::string& in, const std::string& out, const std::string& err,
                                       const std::string& ns, const std::string& id);

}  // namespace talpa::remoteproc::shim
