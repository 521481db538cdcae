// Remote processors as Linux shows them: /sys/class/remoteproc/remoteprocN and its attributes.
// (remoteproc-runtime, section 5; imx93-remoteproc, section 7.1)
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "remoteproc/sys/os_error.h"

namespace talpa::remoteproc {

/// Where the system's folders are. The prefix is a build option ("/" in what users run); tests pass their own.
struct SystemPaths {
    std::string root = "/";

    [[nodiscard]] std::string below(std::string_view path) const;
    [[nodiscard]] std::string device_class() const { return below("/sys/class/remoteproc"); }
    [[nodiscard]] std::string firmware_parameter() const { return below("/sys/module/firmware_class/parameters/path"); }
    [[nodiscard]] std::string default_firmware() const { return below("/lib/firmware"); }
    [[nodiscard]] std::string debug(std::string_view node) const;
    [[nodiscard]] std::string device_tree() const { return below("/sys/firmware/devicetree/base"); }
};

/// X(name, the word in sysfs)
#define TALPA_CORE_STATES(X)  \
    X(Offline, "offline")     \
    X(Suspended, "suspended") \
    X(Running, "running")     \
    X(Crashed, "crashed")     \
    X(Deleted, "deleted")     \
    X(Attached, "attached")   \
    X(Detached, "detached")   \
    X(Invalid, "invalid")

enum class CoreState : std::uint8_t {
#define X(name, word) name,
    TALPA_CORE_STATES(X)
#undef X
};

[[nodiscard]] std::string_view state_word(CoreState state);
/// The state of a word; surrounding white space is ignored.
[[nodiscard]] std::optional<CoreState> parse_state(std::string_view word);
/// The core executes something.
[[nodiscard]] constexpr bool is_live(CoreState state) {
    return state == CoreState::Running || state == CoreState::Attached;
}

struct Device {
    std::string folder;  ///< "/sys/class/remoteproc/remoteproc0"
    std::string name;    ///< what its `name` says, trimmed

    [[nodiscard]] std::string node() const { return folder.substr(folder.rfind('/') + 1); }
    /// For messages: the name, or the node where that was not read.
    [[nodiscard]] std::string label() const { return printable(name.empty() ? node() : name); }
    [[nodiscard]] std::string attribute(std::string_view file) const { return folder + "/" + std::string(file); }
};

/// All devices, by the name of their folder; entries whose `name` cannot be read are left out.
[[nodiscard]] Result<std::vector<Device>> list_devices(const SystemPaths& paths);

/// How a container names its core: by at least one; where several are set, a device must fit all of them.
struct Selector {
    std::optional<std::string> name;        ///< `name` of the device, byte for byte
    std::optional<std::string> compatible;  ///< one of its device-tree node's `compatible`
    std::optional<std::string> device;      ///< "remoteproc0" or a path that ends so
    bool only = false;                      ///< the machine's only one
};

/// The device that is meant, or the error that engines show (section 8, E3 and E4).
[[nodiscard]] Result<Device> find_device(const SystemPaths& paths, const Selector& selector);

/// An attribute's text without trailing white space.
[[nodiscard]] Result<std::string> read_attribute(const Device& device, std::string_view file);
/// One write(2). Returns an errno.
[[nodiscard]] std::expected<void, int> write_attribute(const Device& device, std::string_view file,
                                                       std::string_view text);
/// The state, or "can't parse state from FILE: unknown state WORD".
[[nodiscard]] Result<CoreState> read_state(const Device& device);

}  // namespace talpa::remoteproc
