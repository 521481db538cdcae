// One child process and the pipes to it: what process.cpp and companion.cpp are made of.
#pragma once

#include <optional>

#include "base/host/fd.h"
#include "base/host/program.h"
#include "topo/system/process.h"

namespace talpa::topo {

struct PipeEnds {
    host::Fd read, write;
};

/// Both ends close on exec.
[[nodiscard]] host::Result<PipeEnds> make_pipe();
void set_nonblocking(int fd);

enum class Group { Own, Ours };

struct Streams {
    int in = host::kOurs, out = host::kOurs, err = host::kOurs;
};

/// A running child; ended and reaped when the object goes.
class Child {
  public:
    /// Errors: the program is not there, or cannot be started.
    [[nodiscard]] static host::Result<Child> start(const Command& command, Streams streams, Group group);
    Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)), group_(other.group_) {}
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    Child& operator=(Child&&) = delete;
    ~Child();

    /// To its group, if it has one of its own.
    void send(int signal) const;
    /// Its exit status; 128 + signal.
    [[nodiscard]] int wait();
    /// The status if it has ended within `limit`.
    [[nodiscard]] std::optional<int> wait_for(Milliseconds limit);
    /// TERM, three seconds of grace, KILL.
    int stop();

  private:
    Child() = default;
    pid_t pid_ = -1;
    Group group_ = Group::Own;
};

}  // namespace talpa::topo
