#include "topo/target/ssh_error.h"

#include "topo/system/text.h"

namespace talpa::topo {
namespace {

bool has(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

SshFault classify_ssh(std::string_view stderr_text) {
    const std::string text = lower(stderr_text);
    if (has(text, "host key verification failed") || has(text, "remote host identification has changed"))
        return has(text, "has changed") ? SshFault::HostKeyChanged : SshFault::HostKeyUnknown;
    if (has(text, "timed out") || has(text, "connection timeout")) return SshFault::TimedOut;
    // sshd's "Too many authentication failures" comes with a "Permission denied"-less disconnect; it is looked for
    // first so that the advice fits.
    if (has(text, "too many authentication failures")) return SshFault::TooManyAuthenticationFailures;
    if (has(text, "permission denied")) return SshFault::AuthenticationFailed;
    for (const std::string_view part :
         {"connection refused", "could not resolve hostname", "no route to host", "network is unreachable",
          "connection closed", "connection reset", "broken pipe", "kex_exchange_identification"})
        if (has(text, part)) return SshFault::ConnectionFailed;
    return SshFault::Other;
}

std::string_view describe(SshFault fault) {
    switch (fault) {
        case SshFault::HostKeyChanged:
            return "ssh failed: host key has changed";
        case SshFault::HostKeyUnknown:
            return "ssh failed: host key is not known";
        case SshFault::TimedOut:
            return "ssh failed: connection timed out";
        case SshFault::AuthenticationFailed:
            return "ssh failed: authentication failed";
        case SshFault::TooManyAuthenticationFailures:
            return "ssh failed: too many authentication failures";
        case SshFault::ConnectionFailed:
            return "ssh failed: connection failed";
        case SshFault::Other:
            break;
    }
    return "ssh failed";
}

SshFix fix_for(SshFault fault, const Destination& d) {
    switch (fault) {
        case SshFault::HostKeyChanged:
            return {"Remove the old SSH host key from known_hosts, then retry",
                    "ssh-keygen -R " + shell_quoted(d.known_hosts_name())};
        case SshFault::HostKeyUnknown:
            return {"Trust the target's SSH host key",
                    fmt::format("topo health --target {} --accept-new-host-keys", shell_quoted(d.uri()))};
        case SshFault::AuthenticationFailed:
        case SshFault::TooManyAuthenticationFailures:
            return {"Configure SSH keys on remote target", "topo setup-keys --target " + shell_quoted(d.uri())};
        case SshFault::TimedOut:
        case SshFault::ConnectionFailed:
        case SshFault::Other:
            break;
    }
    return {};
}

host::Error ssh_error(const Destination& d, std::string_view stderr_text, int status, bool timed_out) {
    const SshFault fault = timed_out ? SshFault::TimedOut : classify_ssh(stderr_text);
    std::string message = fmt::format("ssh command to {} failed: ", d.uri());
    message += fault == SshFault::Other ? fmt::format("exit status {}", status) : std::string(describe(fault));
    const std::string said = printable(trimmed(stderr_text));
    if (!said.empty()) message += " | stderr: " + said;
    const SshFix fix = fix_for(fault, d);
    std::string hint = fix.description.empty() ? "" : fix.description + ": " + fix.command;
    if (fault == SshFault::ConnectionFailed)
        hint = "is the target switched on, in this network, and its sshd listening on that port?";
    return {fault == SshFault::TimedOut ? ErrorCode::Timeout : ErrorCode::AccessFailed, std::move(message),
            std::move(hint)};
}

}  // namespace talpa::topo
