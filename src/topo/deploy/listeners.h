// Who listens on a machine: the rows of /proc/net/tcp and tcp6 (proc(5)), as a target prints them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace talpa::topo {

struct Listener {
    std::string address;  ///< hexadecimal, in the byte order of the machine, as it stands there
    std::uint16_t port = 0;
};

/// The rows in state LISTEN; what is no such row is passed over.
[[nodiscard]] std::vector<Listener> listeners(const std::string& tables);
/// Their ports, each once.
[[nodiscard]] std::vector<std::uint16_t> parse_listening(const std::string& tables);
/// The addresses beyond loopback on which a port listens.
[[nodiscard]] std::vector<std::string> exposed_listeners(const std::string& tables, int port);

}  // namespace talpa::topo
