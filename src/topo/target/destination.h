// SSH destinations (topo spec, section 3.1): "[ssh://][USER@]HOST[:PORT]", IPv6 in brackets.
#pragma once

#include <string>
#include <string_view>

#include "base/host/error.h"

namespace talpa::topo {

struct Destination {
    std::string user{}, host{}, port{};  ///< host without brackets
    bool board = false;                  ///< board://NAME: a virtual board of `talpa`; host is its name

    /// "ssh://[USER@]HOST[:PORT]", with the brackets that IPv6 needs (the original leaves them out, and such a target
    /// cannot work); "board://NAME" of a virtual board.
    [[nodiscard]] std::string uri() const;
    /// What ssh is given.
    [[nodiscard]] std::string ssh_uri() const;
    /// `localhost` or 127.0.0.1 without user and port: no SSH, no transfer.
    [[nodiscard]] bool is_plain_localhost() const;
    /// The same hosts, user and port allowed.
    [[nodiscard]] bool is_localhost() const;
    /// As it stands in known_hosts: HOST, or [HOST]:PORT.
    [[nodiscard]] std::string known_hosts_name() const;
    /// For file names: all but letters, digits, '-', '_', '.' becomes '_'.
    [[nodiscard]] std::string slug() const;
};

/// Refuses what the original lets pass and no ssh can reach: an empty host, blanks, control characters, a leading '-'.
[[nodiscard]] host::Result<Destination> parse_destination(std::string_view text);

/// --target, else TOPO_TARGET, trimmed; empty if neither is set.
[[nodiscard]] std::string chosen_target(std::string_view flag);

}  // namespace talpa::topo
