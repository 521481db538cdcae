// A container's root file system, mounted as containerd lists it. (remoteproc-runtime, sections 11 and 17)
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "remoteproc/sys/os_error.h"

namespace talpa::remoteproc::shim {

struct Mount {
    std::string type, source, target;
    std::vector<std::string> options;
};

/// Options as flags of mount(2) and the rest as its data.
struct MountOptions {
    unsigned long flags = 0;
    std::string data;
};
[[nodiscard]] MountOptions split_options(const std::vector<std::string>& options);

/// An overlay's data with the longest common folder of its lower directories taken out, so that many of them fit a
/// page; `folder` is where they count from, empty if nothing was gained.
[[nodiscard]] std::string shorten_overlay(const std::string& data, std::string& folder);

/// Mounts all on `target`; on an error what was mounted is taken away again.
[[nodiscard]] Result<void> mount_all(const std::vector<Mount>& mounts, const std::string& target);
/// Unmounts everything at `target`; nothing there is no error.
void unmount_all(const std::string& target);

}  // namespace talpa::remoteproc::shim
