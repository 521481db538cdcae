// The socket of the GDB stub. gdb-multiarch: `target remote localhost:PORT`, or `target remote /run/…/gdb.socket`.
#pragma once

#include <filesystem>
#include <memory>
#include <thread>

#include "base/host/error.h"
#include "board/machine/machine.h"

namespace talpa::board::gdb {

/// Speaks with one debugger over a connected stream socket until it detaches, goes, or somebody shuts the socket down.
/// The core is halted first, and runs again afterwards. Does not close the socket. Returns soon, without a word, when
/// another debugger has the machine.
void serve(Machine& machine, int socket);

/// Listens, and serves one debugger after the other on a thread of its own.
class Listener {
  public:
    /// On a port of the loopback interface; 0: any free one.
    [[nodiscard]] static host::Result<std::unique_ptr<Listener>> on_port(Machine& machine, std::uint16_t port);
    /// On a Unix socket, which is made (an old one is replaced) and removed at the end.
    [[nodiscard]] static host::Result<std::unique_ptr<Listener>> on_path(Machine& machine,
                                                                         const std::filesystem::path& path);
    /// Ends a conversation that is under way.
    ~Listener();
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

    [[nodiscard]] std::uint16_t port() const { return port_; }

  private:
    Listener(Machine& machine, int socket, std::uint16_t port, std::filesystem::path path);
    void run();

    Machine& machine_;
    int listening_;
    int wake_;  ///< an eventfd: ends the thread
    std::uint16_t port_;
    std::filesystem::path path_;
    std::thread thread_;
};

}  // namespace talpa::board::gdb
