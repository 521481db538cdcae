// OCI hooks: programs that an engine wants run at points of a container's life, the state on their standard input.
// Docker makes a bridged network in one. (OCI runtime-spec, "POSIX-platform Hooks")
#pragma once

#include <string>

#include "remoteproc/oci/spec.h"

namespace talpa::remoteproc {

/// Runs the hooks of one kind in order; the first that fails (status, signal, time-out) is the error, and none after it
/// is run. Hooks get the state as JSON and only the environment that they name.
[[nodiscard]] Result<void> run_hooks(const Hooks& hooks, HookKind kind, const std::string& state);

/// All of them whatever happens; failures are logged (poststart, poststop).
void run_hooks_to_the_end(const Hooks& hooks, HookKind kind, const std::string& state);

}  // namespace talpa::remoteproc
