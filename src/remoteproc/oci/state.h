// A container on disk: state.json in the original's form, so that either implementation can take a container over from
// the other, and details.json beside it with what ours knows more. (remoteproc-runtime, section 3)
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "remoteproc/oci/settings.h"
#include "remoteproc/oci/spec.h"

namespace talpa::remoteproc {

/// state.json
struct StateFile {
    std::string id;
    std::string status;  ///< "created", "running", "stopped" as the last command wrote it
    pid_t pid = 0;
    std::string bundle;
    Annotations annotations;

    [[nodiscard]] std::string annotation(std::string_view key) const;
};

/// details.json; absent for containers of the original.
struct Details {
    std::uint64_t start_time = 0;  ///< of the proxy
    std::string boot;
    pid_t pid = 0;                              ///< of the proxy, should state.json be lost
    std::string device, firmware_path, bundle;  ///< the same, of core, firmware and bundle
    std::optional<std::string> namespace_name;  ///< of the caller; not set: made before this was noted
    std::string root_folder, argument;          ///< where the firmware is
    FileIdentity firmware;
    ContainerKind kind = ContainerKind::Firmware;
    bool deleting = false;
    std::string recovery_before;  ///< what `recovery` said before start changed it
    std::uint64_t created_ns = 0;
    Annotations annotations;  ///< the bundle's
    Hooks hooks;
};

/// JSON with two spaces of indent and no newline at the end, the keys in the original's order; `status` and `pid` as
/// given.
[[nodiscard]] std::string state_json(const StateFile& state, int indent);
[[nodiscard]] Result<StateFile> parse_state_file(std::string_view text);
[[nodiscard]] std::string details_json(const Details& details);
[[nodiscard]] Result<Details> parse_details(std::string_view text);

/// What the proxy wrote down of itself, one line an event: UNIX-NANOSECONDS WORD REST
struct ProxyRecord {
    bool started = false;
    std::optional<int> failed_errno;
    std::string failed_text;
    std::optional<int> exit_code;
    std::string exit_reason;
    std::uint64_t exit_ns = 0, started_ns = 0, last_ns = 0;
};
[[nodiscard]] ProxyRecord parse_proxy_record(std::string_view text);

/// Names allowed for a container, else an error that says so.
[[nodiscard]] Result<void> check_id(std::string_view id);

inline constexpr std::string_view kStateFileName = "state.json", kDetailsFileName = "details.json",
                                  kEventsFileName = "proxy.events", kLogFileName = "log", kLockFileName = "lock";

}  // namespace talpa::remoteproc
