// Two processes: one keeps the privileges and opens what must be opened again while the server runs (the tty after a
// restart of the firmware, trace0), the other talks to the network and has none. Between them a socket with four
// questions and no paths: what may be opened was said on the command line. (Why: an upload is a stranger's bytes.)
#pragma once

#include <sys/types.h>

#include <memory>

#include "link/host/board_access.h"
#include "webapp/board_look.h"

namespace talpa::webapp {

class Broker final : public link::host::BoardAccess {
  public:
    /// Forks the privileged process. It keeps none of the caller's descriptors but the standard streams and its end of
    /// the socket, so not the listening socket either.
    [[nodiscard]] static host::Result<std::unique_ptr<Broker>> start(LookPaths paths);
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
    Broker(talpa::host::Fd socket, pid_t pid);
    [[nodiscard]] host::Result<Answer> ask(char question);

    struct Lock;
    std::unique_ptr<Lock> lock_;  ///< questions come from several threads
    talpa::host::Fd socket_;
    pid_t pid_;
};

}  // namespace talpa::webapp
