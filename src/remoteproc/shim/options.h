// The shim's command line (Go style: -x v, -x=v, --x alike) and the environment that containerd sets.
// (remoteproc-runtime, section 9)
#pragma once

#include <span>
#include <string>

#include "remoteproc/sys/os_error.h"

namespace talpa::remoteproc::shim {

inline constexpr std::string_view kShimName = "io.containerd.remoteproc.v1";

struct ShimOptions {
    std::string namespace_name, id, address, publish_binary, bundle, socket, debug_socket, action;
    bool debug = false, version = false, info = false, help = false;
};

[[nodiscard]] Result<ShimOptions> parse_shim_options(std::span<const std::string> arguments);
[[nodiscard]] std::string shim_usage();

/// The runtime: remoteproc-runtime beside this program, else in PATH; empty if there is none.
[[nodiscard]] std::string find_runtime();

}  // namespace talpa::remoteproc::shim
