// How commands reach a running board: a socket in its state folder. One request a connection, a line of words; the
// answer is text until the end of the stream.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/host/error.h"

namespace talpa::board {

/// An answer under way. Any thread, one at a time.
class ControlReply {
  public:
    explicit ControlReply(int fd) : fd_(fd) {}
    /// False: the asker has gone, or the board goes down.
    bool send(std::string_view text);
    [[nodiscard]] int fd() const { return fd_; }

  private:
    int fd_;
};

class ControlServer {
  public:
    using Handler = std::function<void(const std::vector<std::string>& words, ControlReply& reply)>;

    /// Listens at once; requests are answered from `serve` on.
    [[nodiscard]] static host::Result<std::unique_ptr<ControlServer>> listen(const std::filesystem::path& socket);
    /// Hangs up on askers and waits for their handlers.
    ~ControlServer();

    /// Before `serve`. Each call of a handler is on a thread of its own.
    void on(std::string request, Handler handler) { handlers_[std::move(request)] = std::move(handler); }
    void serve();
    /// After a fork, in the process that does not serve.
    void abandon();

  private:
    explicit ControlServer(int fd) : fd_(fd) {}
    void accept_all();
    void answer(int fd);

    int fd_;
    std::map<std::string, Handler> handlers_;
    std::mutex mutex_;
    std::condition_variable idle_;
    std::vector<int> open_;  ///< connections with a handler at work
    bool ending_ = false;
    std::thread accepting_;
};

/// An open file to the other end of a connection, or from it (-1: none came).
[[nodiscard]] bool send_descriptor(int socket, int fd);
[[nodiscard]] int receive_descriptor(int socket);

/// Connects and sends `request`; the socket on which the answer comes. NotFound when nobody listens.
[[nodiscard]] host::Result<int> open_request(const std::filesystem::path& socket, const std::string& request);
/// Sends `request`; `received` gets the answer piece by piece. NotFound when nobody listens.
[[nodiscard]] host::Result<void> ask_board(const std::filesystem::path& socket, const std::string& request,
                                           const std::function<void(std::string_view)>& received);
[[nodiscard]] host::Result<std::string> ask_board(const std::filesystem::path& socket, const std::string& request);

}  // namespace talpa::board
