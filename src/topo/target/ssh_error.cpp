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
    // ssh's own words when the keep-alives stay without an answer.
    if (has(text, "timeout, server")) return SshFault::ConnectionLost;
    if (has(text, "timed out") || has(text, "connection timeout")) return SshFault::TimedOut;
    // sshd's "Too many authentication failures" comes with a "Permission denied"-less disconnect; it is looked for
    // first so that the advice fits.
    if (has(text, "too many authentication failures")) return SshFault::TooManyAuthenticationFailures;
    if (has(text, "permission denied")) return SshFault::AuthenticationFailed;
    for (const std::string_view part :
         {"connection refused", "could not resolve hostname", "no route to host", "network is unreachable",
          "connection closed", "connection reset", "broken pipe", "kex_exchange_identification"})
        if (has(text, part)) return SshFault::ConnectionFailed;
    // A client of a master that has gone says nothing at all.
    if (trimmed(text).empty()) return SshFault::ConnectionLost;
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
        case SshFault::ConnectionLost:
            return "ssh failed: the connection broke off";
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
        case SshFault::ConnectionLost:
        case SshFault::Other:
            break;
    }
    return {};
}

bool refused_for_now(int status, std::string_view stderr_text) {
    if (status != 255) return false;
    const std::string text = lower(stderr_text);
    // Only ssh's own beginnings of lines: what a remote program says of its connections is none of ours.
    for (const std::string& line : lines_of(text))
        for (const std::string_view start :
             {"kex_exchange_identification:", "ssh_exchange_identification:", "banner exchange:",
              "mux_client_request_session:", "mux_client_hello_exchange:", "mux_client_request_alive:"})
            if (line.starts_with(start) && !has(line, "timed out")) return !has(text, "permission denied");
    return false;
}

host::Error ssh_error(const Destination& d, std::string_view stderr_text, int status, bool timed_out) {
    const SshFault fault = timed_out ? SshFault::TimedOut : classify_ssh(stderr_text);
    std::string message = fmt::format("ssh command to {} failed: ", d.uri());
    message += fault == SshFault::Other ? fmt::format("exit status {}", status) : std::string(describe(fault));
    std::string text(stderr_text);
    std::erase(text, '\r');  // ssh ends its lines with both
    const std::string said = printable(trimmed(text));
    if (!said.empty()) message += " | stderr: " + said;
    const SshFix fix = fix_for(fault, d);
    std::string hint = fix.description.empty() ? "" : fix.description + ": " + fix.command;
    if (fault == SshFault::ConnectionFailed)
        hint = "is the target switched on, in this network, and its sshd listening on that port?";
    if (fault == SshFault::ConnectionLost)
        hint = "run it again: what had been done stays; if it happens often, see the target's sshd log and its load";
    if (refused_for_now(status, stderr_text))
        hint = "the target's sshd refuses connections for now (MaxStartups, MaxSessions): try again";
    return {fault == SshFault::TimedOut ? ErrorCode::Timeout : ErrorCode::AccessFailed, std::move(message),
            std::move(hint)};
}

}  // namespace talpa::topo
