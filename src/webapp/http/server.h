// The HTTP/1.1 server: one thread, as many connections as fit, each step of each with a time limit, so that slow,
// half-closed and garbage connections cost others nothing. Built on Boost.Beast, whose headers need no library of
// their own (Debian's cpp-httplib is a shared library only, and a static binary is wanted); it stays inside
// session.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/host/error.h"
#include "webapp/http/message.h"

namespace talpa::webapp::http {

/// What becomes of a request whose head has arrived.
struct Admission {
    std::uint64_t body_limit = 0;
    std::optional<Response> refusal;  ///< answered at once; the body is not read
};

class Handler {
  public:
    virtual ~Handler() = default;
    /// On the server's thread; must not block.
    [[nodiscard]] virtual Admission admit(const Head& head) = 0;
    virtual void handle(Request request, std::shared_ptr<Exchange> exchange) = 0;
    /// The answer to a request that is none, is too large, or comes when there is no room.
    [[nodiscard]] virtual Response trouble(int status, const std::string& detail) = 0;
};

struct ServerOptions {
    std::string address = "0.0.0.0";
    std::uint16_t port = 3000;
    std::size_t max_connections = 512;
    std::uint64_t max_bodies_bytes = 128 << 20;  ///< of all requests that are being read or answered, together
    unsigned header_timeout_s = 10;              ///< for a head, and between requests of a connection
    unsigned stall_timeout_s = 15;               ///< without a byte of a body, or of an answer taken
};

struct ServerCounts {
    std::uint64_t connections = 0, accepted = 0, dropped = 0, timeouts = 0;
};

class Server {
  public:
    /// Binds and listens; AccessFailed names address and port.
    [[nodiscard]] static host::Result<std::unique_ptr<Server>> listen(const ServerOptions& options);
    virtual ~Server() = default;
    [[nodiscard]] virtual std::uint16_t port() const = 0;
    /// Serves until `stop`; the handler must outlive it.
    virtual void run(Handler& handler) = 0;
    /// Any thread: accepts no more, lets answers that are being written go out (half a second), ends `run`.
    virtual void stop() = 0;
    [[nodiscard]] virtual ServerCounts counts() const = 0;
};

}  // namespace talpa::webapp::http
