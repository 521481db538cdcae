// One debugger's conversation: what each packet does to the machine and what is answered. Knows no socket. What is
// there: registers, memory, breakpoints, single steps, continue, interrupt, the target description. Breakpoints are a
// list of addresses in the simulator; no memory is patched, so the firmware's CRC of itself, and Linux, see nothing of
// them.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "board/machine/machine.h"

namespace talpa::board::gdb {

class Session {
  public:
    /// Halts the core: a debugger finds it standing still.
    explicit Session(Machine& machine);
    /// Takes the breakpoints away and lets the core run.
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    struct Answer {
        std::optional<std::string> payload;  ///< nothing: the answer comes when the core stops
        bool leave_acknowledging = false;    ///< QStartNoAckMode was accepted: after this answer
        bool detached = false;
    };
    [[nodiscard]] Answer handle(std::string_view packet);
    /// Ctrl-C.
    void interrupt();

    /// Was the core set running, and its stop not been told yet?
    [[nodiscard]] bool running() const { return running_; }
    /// The stop reply when it stops within that time.
    [[nodiscard]] std::optional<std::string> stopped(std::chrono::milliseconds at_most);

  private:
    [[nodiscard]] std::string stop_reply(Halt why) const;
    [[nodiscard]] std::string query(std::string_view packet, Answer& answer) const;
    [[nodiscard]] std::string read_memory(std::string_view arguments);
    [[nodiscard]] std::string write_memory(std::string_view arguments, bool binary);
    [[nodiscard]] std::string breakpoint(std::string_view packet);
    [[nodiscard]] std::string write_registers(std::string_view hex);
    [[nodiscard]] std::string write_one(std::string_view arguments);
    void resume(std::string_view address, bool step);

    Machine& machine_;
    std::set<std::uint32_t> breakpoints_;
    bool running_ = false;
    bool interrupted_ = false;
};

}  // namespace talpa::board::gdb
