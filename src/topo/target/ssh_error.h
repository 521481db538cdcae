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
    ConnectionLost,  ///< after it had been made
    Other,
};

[[nodiscard]] SshFault classify_ssh(std::string_view stderr_text);
/// "ssh failed: host key has changed"
[[nodiscard]] std::string_view describe(SshFault fault);

struct SshFix {
    std::string description, command;  ///< both empty: none is known
};
[[nodiscard]] SshFix fix_for(SshFault fault, const Destination& destination);

/// Did ssh end before the command on the target began? A server refuses sessions beyond MaxSessions and logins beyond
/// MaxStartups, and a master may end at the very moment when a client turns to it; a moment later all is well.
[[nodiscard]] bool refused_for_now(int status, std::string_view stderr_text);

/// "ssh command to ssh://D failed: CLASS | stderr: …" with the fix as its hint.
[[nodiscard]] host::Error ssh_error(const Destination& destination, std::string_view stderr_text, int status,
                                    bool timed_out);

}  // namespace talpa::topo
