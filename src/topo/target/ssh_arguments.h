// How ssh is told where to go.
#pragma once

#include <string>
#include <vector>

#include "topo/target/destination.h"

namespace talpa::topo {

/// The last words in front of a command: "-- ssh://D", or for an IPv6 address, which OpenSSH 9.2 does not take in a
/// URI,
/// "-l USER -p PORT -- ADDRESS".
[[nodiscard]] std::vector<std::string> ssh_arguments(const Destination& destination);

}  // namespace talpa::topo
