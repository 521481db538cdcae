// What the connections of a server share: options and limits, who is there and who waits for a request, what was
// counted. One thread, but for the counts.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <list>
#include <mutex>
#include <set>

#include "webapp/http/server.h"

namespace talpa::webapp::http {

class Connection {
  public:
    virtual ~Connection() = default;
    virtual void close() = 0;
};

class Connections {
  public:
    Connections(const ServerOptions& server_options, boost::asio::io_context& context)
        : options(server_options), io(context) {}

    [[nodiscard]] std::size_t size() const { return all_.size(); }
    void add(Connection* connection) {
        all_.insert(connection);
        ++connected;
    }
    void forget(Connection* connection) {
        if (all_.erase(connection) != 0) --connected;
        idle(connection, false);
    }
    void idle(Connection* connection, bool is_idle) {
        idle_.remove(connection);
        if (is_idle) idle_.push_back(connection);
    }
    /// The one that has waited longest for a request; false when none waits.
    bool close_longest_idle() {
        if (idle_.empty()) return false;
        idle_.front()->close();
        return true;
    }
    void close_idle() {
        for (Connection* connection : std::list<Connection*>(idle_)) connection->close();
    }

    /// Books `bytes` of bodies; false when there is no room.
    bool book(std::uint64_t bytes) {
        if (bodies_ + bytes > options.max_bodies_bytes) return false;
        bodies_ += bytes;
        return true;
    }
    void unbook(std::uint64_t bytes) { bodies_ -= bytes; }

    const ServerOptions options;
    boost::asio::io_context& io;
    Handler* handler = nullptr;
    bool stopping = false;
    std::mutex after_the_end;
    std::atomic<std::uint64_t> connected{0}, accepted{0}, dropped{0}, timeouts{0};  ///< read by any thread

  private:
    std::set<Connection*> all_;
    std::list<Connection*> idle_;  ///< longest first
    std::uint64_t bodies_ = 0;
};

}  // namespace talpa::webapp::http
