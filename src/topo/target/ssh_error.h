// What a failed ssh says, in classes (topo spec, sections 3.3 and 5.3). Only ssh's own words are looked at: the
// original took a remote program's "Permission denied" for a refused key (section 13-1).
#pragma once

#include <string>
#include <string_view>

#include "topo/target/destination.h"

namespace talpa::topo {

enum class SshFault {
    HostKeyChanged,
    HostKeyUnknown,
    TimedOut,
    AuthenticationFailed,
    TooManyAuthenticationFailures,
    ConnectionFailed,
    Other,
};

[[nodiscard]] SshFault classify_ssh(std::string_view stderr_text);
/// "ssh failed: host key has changed"
[[nodiscard]] std::string_view describe(SshFault fault);

struct SshFix {
    std::string description, command;  ///< both empty: none is known
};
[[nodiscard]] SshFix fix_for(SshFault fault, const Destination& destination);

/// "ssh command to ssh://D failed: CLASS | stderr: …" with the fix as its hint.
[[nodiscard]] host::Error ssh_error(const Destination& destination, std::string_view stderr_text, int status,
                                    bool timed_out);

}  // namespace talpa::topo
