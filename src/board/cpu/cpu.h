// A Cortex-M33: Armv8-M mainline with DSP and single-precision FPU, always Secure. What is modelled and how it was
// proven: docs/board-cpu.md.
//
// One thread runs it (run, step and all registers); set_irq, set_event, request_stop and wake may come from any thread.
// Time is counted in core cycles, one an instruction; sleeping takes none until the owner says so (skip).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "board/cpu/bus.h"

namespace talpa::board::cpu {

struct Options {
    std::uint32_t cpuid = 0x410FD213;
    bool stop_at_bkpt = false;          ///< BKPT stops the run instead of raising a debug fault: semihosting, debuggers
    bool translate = true;              ///< x86-64 code for hot blocks, where the host allows it
    std::uint32_t translate_after = 8;  ///< runs of a block before that
};

enum class Stop : std::uint8_t {
    Limit,       ///< the instructions asked for were run
    Sleeping,    ///< WFI or WFE with nothing to wake for
    Requested,   ///< request_stop
    Breakpoint,  ///< pc is at a breakpoint set here, not yet executed
    Bkpt,        ///< a BKPT instruction at pc, not executed (Options::stop_at_bkpt)
    Lockup,      ///< a fault that no handler may take; only reset helps
    Reset,       ///< the program wrote SYSRESETREQ; the core has been reset and would go on
};

[[nodiscard]] const char* stop_name(Stop stop);

/// The registers as a debugger shows them.
struct Registers {
    std::array<std::uint32_t, 16> r{};  ///< r[13] the stack pointer in use, r[15] the next instruction
    std::uint32_t xpsr = 0;
    std::uint32_t msp = 0;
    std::uint32_t psp = 0;
    std::uint32_t msplim = 0;
    std::uint32_t psplim = 0;
    std::uint8_t primask = 0;
    std::uint8_t basepri = 0;
    std::uint8_t faultmask = 0;
    std::uint8_t control = 0;
    std::array<std::uint32_t, 32> s{};
    std::uint32_t fpscr = 0;
};

class Machine;

class Cpu {
  public:
    /// The bus must outlive the Cpu; regions added later are seen.
    explicit Cpu(Bus& bus, const Options& options = {});
    ~Cpu();
    Cpu(const Cpu&) = delete;
    Cpu& operator=(const Cpu&) = delete;

    /// As the hardware leaves reset with INITSVTOR = `vtor`: SP and PC from the vector table there. Memory is
    /// untouched; cycles go on counting.
    void reset(std::uint32_t vtor);

    /// Runs until a reason to stop, at most `limit` instructions. A sleeping core returns Sleeping at once when nothing
    /// wakes it.
    Stop run(std::uint64_t limit);
    /// One instruction (or exception entry followed by the handler's first instruction).
    Stop step() { return run(1); }

    /// The level of external interrupt line `irq` (0 to 267). Any thread.
    void set_irq(unsigned irq, bool level);
    /// An external event for WFE. Any thread.
    void set_event();
    /// Ends a run in progress, or the next one. Any thread.
    void request_stop();
    /// Blocks until a line rises, an event or a stop request comes, at most that long; false at time-out.
    bool wait(std::uint64_t microseconds);
    /// Lets time pass while the core sleeps.
    void skip(std::uint64_t cycles);
    /// Cycles until SysTick would interrupt; ~0 for never.
    [[nodiscard]] std::uint64_t cycles_until_timer() const;

    [[nodiscard]] std::uint64_t cycles() const;
    [[nodiscard]] std::uint64_t instructions() const;  ///< executed; without what was skipped
    [[nodiscard]] std::uint64_t exceptions_taken() const;
    [[nodiscard]] bool locked_up() const;
    [[nodiscard]] bool sleeping() const;

    [[nodiscard]] Registers registers() const;
    void set_registers(const Registers& registers);
    [[nodiscard]] std::uint32_t pc() const;
    void set_pc(std::uint32_t address);

    void add_breakpoint(std::uint32_t address);
    void remove_breakpoint(std::uint32_t address);
    /// After anybody but the core itself wrote memory that may hold code, between runs.
    void code_changed();

    /// Memory as the core's data accesses see it, devices and system registers included; for debuggers. False on a
    /// fault.
    bool read_memory(std::uint32_t address, unsigned size, std::uint32_t& value);
    bool write_memory(std::uint32_t address, unsigned size, std::uint32_t value);

    [[nodiscard]] Machine& machine() { return *machine_; }

  private:
    std::unique_ptr<Machine> machine_;
};

}  // namespace talpa::board::cpu
