#include "board/cpu/exceptions.h"

#include <algorithm>
#include <utility>

#include "board/cpu/exception_bits.h"
#include "board/cpu/machine.h"

namespace talpa::board::cpu {

namespace {

constexpr u32 kLockupAddress = 0xEFFFFFFE;

struct FaultFacts {
    u32 status;  ///< what it sets in CFSR
    Exception exception;
};

constexpr FaultFacts facts_of(Fault fault) {
    switch (fault) {
        case Fault::Undefined:
            return {Scs::kUndefinstr, kUsageFault};
        case Fault::InvalidState:
            return {Scs::kInvstate, kUsageFault};
        case Fault::InvalidPc:
            return {Scs::kInvpc, kUsageFault};
        case Fault::NoCoprocessor:
            return {Scs::kNocp, kUsageFault};
        case Fault::StackOverflow:
            return {Scs::kStkof, kUsageFault};
        case Fault::Unaligned:
            return {Scs::kUnaligned, kUsageFault};
        case Fault::DivideByZero:
            return {Scs::kDivbyzero, kUsageFault};
        case Fault::DataAccess:
            return {Scs::kDaccviol | Scs::kMmarvalid, kMemManage};
        case Fault::InstructionAccess:
            return {Scs::kIaccviol, kMemManage};
        case Fault::DataBus:
            return {Scs::kPreciserr | Scs::kBfarvalid, kBusFault};
        case Fault::InstructionBus:
            return {Scs::kIbuserr, kBusFault};
        case Fault::LazyAccess:
            return {Scs::kMlsperr, kMemManage};
        case Fault::LazyBus:
            return {Scs::kLsperr, kBusFault};
        case Fault::Secure:
            return {0, kSecureFault};
    }
    return {};
}

}  // namespace

void Exceptions::reset() {
    current = 0;
    control = 0;
    primask = faultmask = false;
    basepri = 0;
    locked_up = false;
    thumb = true;
    other_sp_ = main_limit_ = process_limit_ = 0;
    process_in_use_ = negative_active_ = mpu_bypassed_ = false;
    for (u32& value : nonsecure_) value = 0;
    apply_mode();
}

u32 Exceptions::machine_sp() const {
    return machine_.core.r[kSp];
}
bool Exceptions::on_process_stack() const {
    return process_in_use_;
}
void Exceptions::set_main_stack(u32 value) {
    (process_in_use_ ? other_sp_ : machine_.core.r[kSp]) = value & ~3U;
}
void Exceptions::set_process_stack(u32 value) {
    (process_in_use_ ? machine_.core.r[kSp] : other_sp_) = value & ~3U;
}

void Exceptions::switch_stack(bool to_process) {
    if (to_process != process_in_use_) std::swap(machine_.core.r[kSp], other_sp_);
    process_in_use_ = to_process;
    machine_.core.stack_limit = to_process ? process_limit_ : main_limit_;
}

void Exceptions::apply_mode() {
    Core& core = machine_.core;
    core.handler_mode = current != 0;
    core.privileged = core.handler_mode || (control & kUnprivilegedThread) == 0;
    switch_stack(!core.handler_mode && (control & kProcessStack) != 0);
    machine_.memory.select(core.privileged);
    negative_active_ = machine_.nvic.active(kHardFault) || machine_.nvic.active(kNmi);
    const bool bypassed =
        machine_.mpu.enabled() && (machine_.mpu.control & Mpu::kHardFaultEnable) == 0 && negative_priority();
    if (bypassed != mpu_bypassed_) {
        mpu_bypassed_ = bypassed;
        machine_.memory.flush_pages();
        machine_.request_code_flush();
    }
    update_fp_ready();
}

void Exceptions::update_fp_ready() {
    const Scs& scs = machine_.scs;
    const u32 active = kFpActive | kSecureFpActive;
    machine_.core.fp_ready = scs.fp_enabled(machine_.core.privileged) && (scs.fpccr & Scs::kLspact) == 0 &&
                             ((scs.fpccr & Scs::kAspen) == 0 || (control & active) == active);
}

int Exceptions::execution_priority(bool ignore_primask) const {
    int priority = machine_.nvic.active_priority();
    if (basepri != 0) priority = std::min(priority, machine_.nvic.group_of(basepri));
    if (primask && !ignore_primask) priority = std::min(priority, 0);
    if (faultmask) priority = std::min(priority, -1);
    return priority;
}

bool Exceptions::would_wake(bool ignore_primask) const {
    const unsigned exception = machine_.nvic.highest_pending();
    return exception != 0 && machine_.nvic.group_priority(exception) < execution_priority(ignore_primask);
}

bool Exceptions::take_pending() {
    if (!would_wake(false)) return false;
    enter(machine_.core.pc);
    return true;
}

// --- faults ---

void Exceptions::lockup() {
    locked_up = true;
    machine_.core.pc = kLockupAddress;
}

bool Exceptions::could_take(unsigned exception, int priority) const {
    return machine_.nvic.enabled(exception) && machine_.nvic.group_priority(exception) < priority;
}

void Exceptions::pend_synchronous(unsigned exception) {
    const int priority = execution_priority();
    if (exception != kHardFault && !could_take(exception, priority)) {
        exception = kHardFault;
        machine_.scs.hfsr |= Scs::kForced;
    }
    if (exception == kHardFault && priority <= machine_.nvic.group_priority(kHardFault)) return lockup();
    machine_.nvic.set_pending(exception, true);
}

void Exceptions::handle_fault(Fault fault, u32 address) {
    Scs& scs = machine_.scs;
    const FaultFacts facts = facts_of(fault);
    scs.cfsr |= facts.status;
    if ((facts.status & Scs::kMmarvalid) != 0) scs.mmfar = address;
    if ((facts.status & Scs::kBfarvalid) != 0) scs.bfar = address;
    if (fault == Fault::InvalidState) thumb = false;
    if (fault == Fault::Secure) scs.sfsr |= 1;  // INVEP: no entry point where there is no non-secure world
    pend_synchronous(facts.exception);
    if (!locked_up) enter(machine_.core.pc);
}

void Exceptions::supervisor_call() {
    pend_synchronous(kSvCall);
    if (!locked_up) enter(machine_.core.pc);
}

void Exceptions::breakpoint() {
    constexpr u32 kDfsrBkpt = 2;
    constexpr u32 kMonitorEnable = 1U << 16;
    machine_.scs.dfsr |= kDfsrBkpt;
    const int priority = execution_priority();
    if ((machine_.scs.demcr & kMonitorEnable) != 0 && machine_.nvic.group_priority(kDebugMonitor) < priority) {
        machine_.nvic.set_pending(kDebugMonitor, true);
    } else {
        machine_.scs.hfsr |= Scs::kDebugevt;
        if (priority <= machine_.nvic.group_priority(kHardFault)) return lockup();
        machine_.nvic.set_pending(kHardFault, true);
    }
    enter(machine_.core.pc);
}

// --- entry ---

void Exceptions::enter(u32 return_address) {
    const bool thread = current == 0;
    const u32 lr = kReturnBase | ((control & kFpActive) != 0 ? 0 : kNoFpFrame) | (thread ? kToThread : 0) |
                   (thread && (control & kProcessStack) != 0 ? kToProcessStack : 0);
    push_frame(return_address);
    if (locked_up) return;
    take(machine_.nvic.highest_pending(), lr);
}

void Exceptions::stacking_failed(Fault fault, bool unstacking) {
    Scs& scs = machine_.scs;
    switch (fault) {
        case Fault::DataBus:
            scs.cfsr |= unstacking ? Scs::kUnstkerr : Scs::kStkerr;
            return pend_synchronous(kBusFault);
        case Fault::StackOverflow:
            scs.cfsr |= Scs::kStkof;
            return pend_synchronous(kUsageFault);
        case Fault::NoCoprocessor:
            scs.cfsr |= Scs::kNocp;
            return pend_synchronous(kUsageFault);
        default:
            scs.cfsr |= unstacking ? Scs::kMunstkerr : Scs::kMstkerr;
            return pend_synchronous(kMemManage);
    }
}

void Exceptions::take(unsigned exception, u32 lr) {
    Core& core = machine_.core;
    u32 vector = 0;
    // Vector reads use the default memory map, as a privileged access.
    if (machine_.memory.read(machine_.scs.vtor + 4 * exception, 4, true, kAligned, vector)) {
        machine_.scs.hfsr |= Scs::kVecttbl;
        if (exception == kHardFault || execution_priority() <= machine_.nvic.group_priority(kHardFault))
            return lockup();
        machine_.nvic.set_pending(kHardFault, true);
        return take(kHardFault, lr);
    }
    machine_.exceptions_taken++;
    machine_.nvic.set_pending(exception, false);
    machine_.nvic.set_active(exception, true);
    current = exception;
    control &= ~(kProcessStack | kFpActive | kSecureFpActive);
    core.it = 0;
    core.exclusive = false;
    core.event = true;
    thumb = true;
    apply_mode();
    core.r[kLr] = lr;
    core.pc = vector & ~1U;
    if ((vector & 1) == 0) handle_fault(Fault::InvalidState, 0);
}

// --- return ---

/// INVPC on the frame that is there: the fault handler is tail-chained.
void Exceptions::invalid_return(u32 lr) {
    machine_.scs.cfsr |= Scs::kInvpc;
    pend_synchronous(kUsageFault);
    if (!locked_up) take(machine_.nvic.highest_pending(), lr);
}

void Exceptions::exception_return(u32 exc_return) {
    Core& core = machine_.core;
    Scs& scs = machine_.scs;
    const unsigned returning = current;
    if ((scs.fpccr & Scs::kClronret) != 0 && (control & kFpActive) != 0) {
        std::fill(core.f.begin(), core.f.begin() + 16, 0U);
        core.fpscr = 0;
    }
    // Only FType, Mode and SPSEL may vary: the rest would leave the Secure state or break the stacking rules.
    const bool well_formed = (exc_return | kNoFpFrame | kToThread | kToProcessStack) ==
                             (kReturnBase | kNoFpFrame | kToThread | kToProcessStack);
    const bool was_active = machine_.nvic.active(returning);
    if (!(machine_.nvic.active_priority() < 0)) faultmask = false;
    machine_.nvic.set_active(returning, false);
    if (!well_formed || !was_active) return invalid_return(exc_return);
    if ((exc_return & kToProcessStack) != 0)
        control |= kProcessStack;
    else
        control &= ~kProcessStack;
    core.event = true;
    if (would_wake(false)) return take(machine_.nvic.highest_pending(), exc_return);  // tail-chaining
    pop_frame(exc_return);
}

}  // namespace talpa::board::cpu
