// What happens between instructions: priorities, exception entry and return, faults and their escalation, lazy FP
// state, the special registers that govern them (manual B3). The core always is in the Secure state
// (docs/board-cpu.md). In exceptions.cpp is when and why, in exception_frames.cpp what lies on the stack, in
// special_registers.cpp what MRS and MSR see.
#pragma once

#include <optional>

#include "board/cpu/core.h"

namespace talpa::board::cpu {

class Exceptions {
  public:
    explicit Exceptions(Machine& machine) : machine_(machine) {}

    /// Registers as after reset; does not fetch the vector.
    void reset();

    /// Takes the most urgent pending exception if it may preempt now.
    bool take_pending();
    /// Whether a sleeping core must wake: for WFI masks by PRIMASK do not count.
    [[nodiscard]] bool would_wake(bool ignore_primask) const;
    /// Turns the fault in the core into an exception entry, or lockup.
    void handle_fault(Fault fault, u32 address);
    void supervisor_call();
    void breakpoint();
    void exception_return(u32 exc_return);
    /// ExecuteFPCheck and PreserveFPState: nothing, or the fault of the FP instruction.
    std::optional<Fault> activate_fp();
    /// After CPACR, FPCCR or CONTROL changed.
    void update_fp_ready();

    [[nodiscard]] int execution_priority(bool ignore_primask = false) const;
    /// HardFault, NMI or FAULTMASK rule.
    [[nodiscard]] bool negative_priority() const { return faultmask || negative_active_; }

    // Special registers. Writing applies the architecture's side effects.
    [[nodiscard]] u32 read_special(unsigned sysm, bool privileged) const;
    void write_special(unsigned sysm, unsigned mask, u32 value);
    [[nodiscard]] u32 xpsr() const;
    [[nodiscard]] u32 main_stack() const { return on_process_stack() ? other_sp_ : machine_sp(); }
    [[nodiscard]] u32 process_stack() const { return on_process_stack() ? machine_sp() : other_sp_; }
    void set_main_stack(u32 value);
    void set_process_stack(u32 value);
    [[nodiscard]] bool on_process_stack() const;
    /// Brings core.r[13], limits, privilege and page tables in line with CONTROL and the mode.
    void apply_mode();

    unsigned current = 0;  ///< IPSR
    u32 control = 0;
    bool primask = false;
    bool faultmask = false;
    u8 basepri = 0;
    bool locked_up = false;
    bool thumb = true;  ///< EPSR.T: clear between a branch to an even address and the fault that it brings

  private:
    [[nodiscard]] u32 machine_sp() const;
    void switch_stack(bool to_process);
    /// Makes a synchronous exception pending, escalated when it cannot be taken.
    void pend_synchronous(unsigned exception);
    void enter(u32 return_address);
    void push_frame(u32 return_address);
    void take(unsigned exception, u32 lr);
    void pop_frame(u32 exc_return);
    void prepare_lazy(u32 address);
    [[nodiscard]] bool could_take(unsigned exception, int priority) const;
    void stacking_failed(Fault fault, bool unstacking);
    void unstacking_failed(Fault fault, u32 exc_return);
    [[nodiscard]] std::optional<Fault> pop_fp(u32 address, bool privileged);
    [[nodiscard]] std::optional<Fault> save_lazy();
    void invalid_return(u32 lr);
    void lockup();

    Machine& machine_;
    u32 other_sp_ = 0;
    u32 main_limit_ = 0;
    u32 process_limit_ = 0;
    bool process_in_use_ = false;
    bool negative_active_ = false;
    bool mpu_bypassed_ = false;
    u32 nonsecure_[8] = {};  ///< MSP_NS and its relatives: stored, without effect
};

}  // namespace talpa::board::cpu
