// The shim's server: accepts connections of its own user, cuts them into calls, and hands those to the Task service.
// (remoteproc-runtime, sections 9.2 and 10)
#pragma once

#include <map>
#include <memory>
#include <string>

#include "remoteproc/shim/loop.h"
#include "remoteproc/shim/task.h"

namespace talpa::remoteproc::shim {

class Server {
  public:
    Server(Loop& loop, TaskService& tasks, Fd listener);
    [[nodiscard]] std::size_t connections() const { return connections_.size(); }
    /// No new connections from here on.
    void stop_listening();
    /// Everything that was answered has been written.
    [[nodiscard]] bool flushed() const;

  private:
    struct Connection {
        Fd socket;
        FrameReader frames;
        std::string out;
        std::uint32_t last_stream = 0;
    };
    void listen();
    void accept();
    void ready(int fd, std::uint32_t events);
    void handle(const std::shared_ptr<Connection>& connection, const Frame& frame);
    void answer(const std::weak_ptr<Connection>& to, std::uint32_t stream, const Reply& reply);
    void write(Connection& connection);
    void close(int fd);

    Loop& loop_;
    TaskService& tasks_;
    Fd listener_;
    std::map<int, std::shared_ptr<Connection>> connections_;
};

}  // namespace talpa::remoteproc::shim
