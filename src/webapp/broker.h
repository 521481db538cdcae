// Two processes: one keeps the privileges and opens what must be opened again while the server runs (the tty after a
// restart of the firmware, trace0), the other talks to the network and has none. Between them a socket with four
// questions and no paths: what may be opened was said on the command line. (Why: an upload is a stranger's bytes.)
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>

#include "link/host/board_access.h"
#include "webapp/board_look.h"

namespace talpa::webapp {

class Broker final : public link::host::BoardAccess {
  public:
    /// Forks the privileged process. It keeps none of the caller's descriptors but the standard streams and its end of
    /// the socket, so not the listening socket either.
    /// A question that is not answered within `answer_timeout` fails; the answer that comes after all is thrown away.
    [[nodiscard]] static host::Result<std::unique_ptr<Broker>> start(
        LookPaths paths, std::chrono::milliseconds answer_timeout = std::chrono::seconds(5));
    /// Waits half a second for its end. (One that hangs in the kernel has other rights than the server has by now, so
    /// that only the kernel can end it: at the end of the server.)
    ~Broker() override;

    /// Given once: after the memory has been mapped, nobody gets it again.
    [[nodiscard]] link::host::BoardResult<talpa::host::Fd> open_memory() override;
    [[nodiscard]] link::host::BoardResult<link::host::OpenedTty> open_tty() override;
    [[nodiscard]] link::host::RemoteprocLook look() override;
    [[nodiscard]] BoardLook look_at_board();
    [[nodiscard]] pid_t pid() const { return pid_; }

  private:
    struct Answer {
        host::Json json;
        talpa::host::Fd fd;
    };
    Broker(talpa::host::Fd socket, pid_t pid, std::chrono::milliseconds answer_timeout);
    [[nodiscard]] host::Result<Answer> ask(char kind);
    [[nodiscard]] host::Result<Answer> receive();

    struct Lock;
    std::unique_ptr<Lock> lock_;  ///< questions come from several threads
    talpa::host::Fd socket_;
    pid_t pid_;
    std::chrono::milliseconds answer_timeout_;
    std::uint32_t asked_ = 0;      ///< the number of the last question, which its answer carries
    talpa::host::Fd late_memory_;  ///< of an answer that nobody waited for any more: it is given once only
};

}  // namespace talpa::webapp
