// What one call of the runtime works with: folders, and who called it.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "remoteproc/sysfs/device.h"
#include "remoteproc/sysfs/firmware_store.h"
#include "remoteproc/sysfs/owner.h"

namespace talpa::remoteproc {

inline constexpr std::string_view kOciVersion = "1.3.0";
inline constexpr std::string_view kProgram = "remoteproc-runtime";

/// How a container that ended by itself is told from one that was stopped. docs/remoteproc-runtime.md shows this table.
enum ExitCode : int {
    kExitStopped = 0,    ///< stopped on request
    kExitLost = 1,       ///< somebody else stopped the core, the device went away, or the start failed
    kExitKilled = 137,   ///< the proxy was killed
    kExitCrashed = 139,  ///< the firmware crashed and was not recovered
    kExitHung = 140,     ///< the firmware's heartbeat stood still, or it reported a fault
};

struct Settings {
    SystemPaths paths;
    std::string state_root;    ///< one folder a container
    std::string run_folder;    ///< locks and owners of cores; of this boot
    std::string index_folder;  ///< which firmware files are ours
    bool runc_style = false;   ///< --root was given: an engine that cannot pass annotations may be calling
    /// Descriptors that become the container's standard input, output and error; not set: /dev/null.
    std::optional<std::array<int, 3>> output;
    std::string namespace_name;  ///< containerd's, as our shim tells it; empty: called by hand or by another engine
    bool caller_guards = false;  ///< whoever calls us stops the core should the proxy be killed (our shim)

    [[nodiscard]] CoreOwners owners() const { return CoreOwners(run_folder); }
    [[nodiscard]] FirmwareIndex index() const { return FirmwareIndex(index_folder); }
    /// Where a container's state lies: in its namespace's own place where another namespace, or somebody without one,
    /// had the id first.
    [[nodiscard]] std::string state_folder(const std::string& id) const;
    [[nodiscard]] std::string plain_folder(const std::string& id) const { return state_root + "/" + id; }
    [[nodiscard]] std::string own_folder(const std::string& id) const {
        return plain_folder(id + "+" + namespace_name);
    }
};

/// From the build's prefix, --root (empty: not given) and the environment. (section 3)
[[nodiscard]] Settings make_settings(const std::string& prefix, const std::string& root_option);

/// The home folder of the effective user, from the user database and not from $HOME, which engines scrub.
[[nodiscard]] std::string home_folder();

/// "2026-11-30T02:50:54.123456789Z"
[[nodiscard]] std::string rfc3339(std::uint64_t unix_ns);
[[nodiscard]] std::uint64_t unix_ns_now();

}  // namespace talpa::remoteproc
