// Bringing a core to a known state, whatever it was left in. Kernels since 5.18 count starts: a "stop" may only lower
// the count, so each stop is verified; a crashed core is recovered first, because it takes neither "stop" nor new
// firmware. (remoteproc-runtime, section 5)
#pragma once

#include <string>

#include "remoteproc/sysfs/device.h"

namespace talpa::remoteproc {

/// Stops a running (or attached) core and sees it offline; repeats as the kernel's count of starts wants. A core that
/// is not live already is success. Error: InvalidState with the errno's text.
[[nodiscard]] Result<void> stop_core(const Device& device, int timeout_ms = 10000);

/// For a core that reads offline although a process that was killed had told it to start: waits until the kernel is
/// done with that, and stops what came of it. Nothing happens to a core that nobody started.
[[nodiscard]] Result<void> stop_booting_core(const Device& device);

/// A crashed core is rebooted by "recover" and then stopped. The kernel loads the *old* firmware's name again: where
/// that file is gone from `firmware_folder`, `substitute` (a path, may be empty) stands in for it meanwhile.
[[nodiscard]] Result<void> recover_and_stop(const Device& device, const std::string& firmware_folder,
                                            const std::string& substitute);

/// stop_core or recover_and_stop, as the state wants. Detached, suspended and deleted cores are an error.
[[nodiscard]] Result<void> bring_offline(const Device& device, const std::string& firmware_folder,
                                         const std::string& substitute);

}  // namespace talpa::remoteproc
