// What the shim does before and after there is a server: `start` makes the socket and the server and tells containerd
// the address, `delete` clears away after a shim that died, -v and -info tell. (remoteproc-runtime, section 9)
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "remoteproc/shim/options.h"

namespace talpa::remoteproc::shim {

/// What a containerd of version 2.3 and later hands over on standard input.
struct BootstrapParams {
    std::string instance_id, namespace_name, ttrpc_address, grpc_address, socket_folder;
    bool debug = false;
};
/// Nothing unless the bytes are such parameters beyond doubt: runtime options look alike.
[[nodiscard]] std::optional<BootstrapParams> parse_bootstrap(std::string_view bytes, const ShimOptions& options);

/// "unix://DIR/SHA-256", the same for every start of one container (or of one pod).
[[nodiscard]] std::string socket_address(const std::string& folder, const std::string& containerd,
                                         const std::string& ns, const std::string& id);

/// The reply in the form that the caller understands.
[[nodiscard]] std::string start_reply(const std::string& address, bool modern, bool json);

[[nodiscard]] int run_start(const ShimOptions& options);
[[nodiscard]] int run_delete(const ShimOptions& options);
/// RuntimeInfo
[[nodiscard]] std::string info_bytes(std::string_view version);

/// How a container ended, kept in its bundle for `delete`.
struct ExitRecord {
    std::uint64_t pid = 0, status = 0, exited_ns = 0;
};
void write_exit_record(const std::string& bundle, const ExitRecord& record);
[[nodiscard]] std::optional<ExitRecord> read_exit_record(const std::string& bundle);

}  // namespace talpa::remoteproc::shim
