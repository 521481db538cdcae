// The tty of the M33's runner as lines: one that is held open as long as the firmware keeps it, locked against other
// programs while an exchange lasts. (imx93-remoteproc, sections 4.2 and 11)
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <string>

#include "link/host/board_access.h"
#include "link/runner_protocol.h"

namespace talpa::link::host {

class RunnerTty {
  public:
    using Clock = std::chrono::steady_clock;
    explicit RunnerTty(OpenedTty opened) : tty_(std::move(opened)) {}

    [[nodiscard]] const std::string& path() const { return tty_.path; }
    /// Has the firmware's side gone?
    [[nodiscard]] bool hung_up() const;

    /// Takes the lock that cooperating programs take (flock) and drops what was received before. `give_up` is asked
    /// every few milliseconds. False: given up.
    [[nodiscard]] bool lock(const std::function<bool()>& give_up);
    void unlock();

    /// Writes the line and its end. False: the firmware's side has gone.
    [[nodiscard]] bool send(std::string_view line);
    enum class Got : std::uint8_t { Line, Nothing, HungUp };
    /// The next line, waiting until `until` at most.
    [[nodiscard]] Got receive(std::string& line, Clock::time_point until);

  private:
    OpenedTty tty_;
    LineAssembler assembler_;
    std::deque<std::string> lines_;
    bool locked_ = false;
    bool fresh_ = false;  ///< nothing was sent since the lock was taken
};

}  // namespace talpa::link::host
