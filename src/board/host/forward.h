// Ports of the board on the user's machine: a listening socket stays in the network namespace where it was made, so
// what listens outside connects inside, and nobody's packet filter or interfaces are touched. (topo, section 18.2)
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/host/error.h"

namespace talpa::board {

struct PublishedPort {
    std::uint16_t outside = 0;  ///< 0: any free one
    std::uint16_t inside = 0;
};

/// "PORT" or "PORT:BOARDPORT".
[[nodiscard]] host::Result<PublishedPort> parse_published(const std::string& text);

class Forwarder {
  public:
    /// What a client is connected with: a socket, or a negative errno.
    using Connect = std::function<int()>;

    /// Listens at address:port.outside, in the network namespace that this thread is in. Before `serve` clients wait.
    [[nodiscard]] static host::Result<std::unique_ptr<Forwarder>> listen(const std::string& address,
                                                                         PublishedPort port);
    /// The same with a socket that listens already, of whatever network namespace; it is the forwarder's from now on.
    [[nodiscard]] static std::unique_ptr<Forwarder> adopt(int listener, PublishedPort port);
    /// Ends all connections.
    ~Forwarder();
    Forwarder(const Forwarder&) = delete;
    Forwarder& operator=(const Forwarder&) = delete;

    /// From now on connects each client to 127.0.0.1:port.inside of the network namespace that this thread is in. A
    /// client of a port where nobody listens is reset.
    void serve();
    /// The same with something else than a port.
    void serve(Connect connect);
    /// With the port that was chosen.
    [[nodiscard]] PublishedPort port() const;
    [[nodiscard]] int listener() const;
    /// After a fork, in the process that does not serve.
    void abandon();

  private:
    struct State;
    explicit Forwarder(std::shared_ptr<State> state);
    std::shared_ptr<State> state_;
};

/// Connects to 127.0.0.1:port here. Negative errno on failure.
[[nodiscard]] int connect_local(std::uint16_t port);
/// Moves bytes both ways between (in, out) and a socket until both directions have ended, or `stop` becomes readable.
void relay(int in, int out, int socket, int stop = -1);

}  // namespace talpa::board
