#include "board/cpu/exceptions.h"

#include <algorithm>
#include <utility>

#include "board/cpu/float32.h"
#include "board/cpu/machine.h"

namespace talpa::board::cpu {

namespace {

// CONTROL
constexpr u32 kUnprivilegedThread = 1;
constexpr u32 kProcessStack = 2;
constexpr u32 kFpActive = 4;
constexpr u32 kSecureFpActive = 8;

// EXC_RETURN with everything Secure and the default stacking rules; FType, Mode and SPSEL come on top.
constexpr u32 kReturnBase = 0xFFFFFFE1;
constexpr u32 kNoFpFrame = 1U << 4;
constexpr u32 kToThread = 1U << 3;
constexpr u32 kToProcessStack = 1U << 2;

constexpr u32 kThumbBit = 1U << 24;
constexpr u32 kRealigned = 1U << 9;
constexpr u32 kStackedSfpa = 1U << 20;

constexpr u32 kBasicFrame = 0x20;
constexpr u32 kFpFrame = 0x68;
constexpr u32 kFullFpFrame = 0xA8;

constexpr u32 kLockupAddress = 0xEFFFFFFE;

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

// --- faults
// -------------------------------------------------------------------------------------------------------------

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
    struct Row {
        u32 status;
        Exception exception;
    };
    Row row{};
    switch (fault) {
        case Fault::Undefined:
            row = {Scs::kUndefinstr, kUsageFault};
            break;
        case Fault::InvalidState:
            row = {Scs::kInvstate, kUsageFault};
            thumb = false;
            break;
        case Fault::InvalidPc:
            row = {Scs::kInvpc, kUsageFault};
            break;
        case Fault::NoCoprocessor:
            row = {Scs::kNocp, kUsageFault};
            break;
        case Fault::StackOverflow:
            row = {Scs::kStkof, kUsageFault};
            break;
        case Fault::Unaligned:
            row = {Scs::kUnaligned, kUsageFault};
            break;
        case Fault::DivideByZero:
            row = {Scs::kDivbyzero, kUsageFault};
            break;
        case Fault::DataAccess:
            row = {Scs::kDaccviol | Scs::kMmarvalid, kMemManage};
            scs.mmfar = address;
            break;
        case Fault::InstructionAccess:
            row = {Scs::kIaccviol, kMemManage};
            break;
        case Fault::DataBus:
            row = {Scs::kPreciserr | Scs::kBfarvalid, kBusFault};
            scs.bfar = address;
            break;
        case Fault::InstructionBus:
            row = {Scs::kIbuserr, kBusFault};
            break;
        case Fault::LazyAccess:
            row = {Scs::kMlsperr, kMemManage};
            break;
        case Fault::LazyBus:
            row = {Scs::kLsperr, kBusFault};
            break;
        case Fault::Secure:
            scs.sfsr |= 1;  // INVEP: no entry point where there is no non-secure world
            row = {0, kSecureFault};
            break;
    }
    scs.cfsr |= row.status;
    pend_synchronous(row.exception);
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

// --- entry
// --------------------------------------------------------------------------------------------------------------

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

void Exceptions::push_frame(u32 return_address) {
    Core& core = machine_.core;
    Scs& scs = machine_.scs;
    const bool fp = (control & kFpActive) != 0;
    const u32 size = !fp ? kBasicFrame : (scs.fpccr & Scs::kTs) != 0 ? kFullFpFrame : kFpFrame;
    const u32 sp = core.r[kSp];
    const u32 frame = (sp - size) & ~7U;
    if (sp < size || frame < core.stack_limit) {
        core.r[kSp] = core.stack_limit & ~7U;
        return stacking_failed(Fault::StackOverflow, false);
    }
    const u32 status = (xpsr() & ~(kRealigned | kStackedSfpa)) | ((sp & 4) != 0 ? kRealigned : 0) |
                       ((control & kSecureFpActive) != 0 ? kStackedSfpa : 0);
    core.r[kSp] = frame;
    const u32 words[8] = {core.r[0], core.r[1], core.r[2], core.r[3], core.r[12], core.r[kLr], return_address, status};
    const auto push = [&](u32 address, u32 value) {
        auto fault = machine_.memory.write(address, 4, core.privileged, kAligned, value);
        if (fault) stacking_failed(*fault, false);
        return !fault;
    };
    for (u32 i = 0; i < 8; i++)
        if (!push(frame + 4 * i, words[i])) return;
    if (!fp) return;
    if ((scs.fpccr & Scs::kLspen) != 0) return prepare_lazy(frame + kBasicFrame);
    if (!scs.fp_enabled(core.privileged)) return stacking_failed(Fault::NoCoprocessor, false);
    const u32 registers = size == kFullFpFrame ? 32 : 16;
    for (u32 i = 0; i < registers; i++)
        if (!push(frame + (i < 16 ? 0x20 : 0x28) + 4 * i, core.f[i])) return;
    push(frame + 0x60, core.fpscr);
}

/// Leaves room in the frame and remembers where, and which faults could be taken from there.
void Exceptions::prepare_lazy(u32 address) {
    Scs& scs = machine_.scs;
    const int priority = execution_priority();
    u32 value = scs.fpccr & (Scs::kAspen | Scs::kLspen | Scs::kLspens | Scs::kClronret | Scs::kClronrets | Scs::kTs);
    value |= Scs::kLspact;
    if (!machine_.core.privileged) value |= Scs::kFpUser;
    if (current == 0) value |= Scs::kFpThread;
    if (priority > machine_.nvic.group_priority(kHardFault)) value |= Scs::kHfrdy;
    if (could_take(kMemManage, priority)) value |= Scs::kMmrdy;
    if (could_take(kBusFault, priority)) value |= Scs::kBfrdy;
    if (could_take(kUsageFault, priority)) value |= Scs::kUfrdy;
    if (could_take(kSecureFault, priority)) value |= Scs::kSfrdy;
    if (could_take(kDebugMonitor, priority)) value |= Scs::kMonrdy;
    scs.fpccr = value;
    scs.fpcar = address & ~7U;
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

// --- return
// -------------------------------------------------------------------------------------------------------------

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

void Exceptions::pop_frame(u32 exc_return) {
    Core& core = machine_.core;
    Scs& scs = machine_.scs;
    const bool to_thread = (exc_return & kToThread) != 0;
    const bool fp = (exc_return & kNoFpFrame) == 0;
    const bool process = to_thread && (exc_return & kToProcessStack) != 0;
    const bool privileged = !to_thread || (control & kUnprivilegedThread) == 0;
    switch_stack(process);
    const u32 frame = core.r[kSp];
    const auto pop = [&](u32 address, u32& value) {
        auto fault = machine_.memory.read(address, 4, privileged, kAligned, value);
        if (!fault) return true;
        switch_stack(false);
        stacking_failed(*fault, true);
        if (!locked_up) take(machine_.nvic.highest_pending(), exc_return);
        return false;
    };
    u32 words[8];
    for (u32 i = 0; i < 8; i++)
        if (!pop(frame + 4 * i, words[i])) return;
    const u32 status = words[7];
    if (((status & 0x1FF) == 0) != to_thread) {
        switch_stack(false);
        return invalid_return(exc_return);
    }
    u32 size = kBasicFrame;
    if (fp) {
        size = (scs.fpccr & Scs::kTs) != 0 ? kFullFpFrame : kFpFrame;
        if ((scs.fpccr & Scs::kLspact) != 0) {
            scs.fpccr &= ~Scs::kLspact;  // never stacked: the registers still hold the context
        } else {
            if (!scs.fp_enabled(privileged)) {
                switch_stack(false);
                stacking_failed(Fault::NoCoprocessor, true);
                if (!locked_up) take(machine_.nvic.highest_pending(), exc_return);
                return;
            }
            u32 values[33];
            const u32 registers = size == kFullFpFrame ? 32 : 16;
            for (u32 i = 0; i < registers; i++)
                if (!pop(frame + (i < 16 ? 0x20 : 0x28) + 4 * i, values[i])) return;
            if (!pop(frame + 0x60, values[32])) return;
            std::copy_n(values, registers, core.f.begin());
            core.fpscr = values[32] & float32::kWritable;
        }
    }
    core.r[kSp] = (frame + size) | ((status & kRealigned) != 0 ? 4U : 0U);
    for (unsigned i = 0; i < 4; i++) core.r[i] = words[i];
    core.r[12] = words[4];
    core.r[kLr] = words[5];
    core.pc = words[6] & ~1U;
    core.set_nzcv(status);
    core.q = bit(status, 27) ? 1 : 0;
    core.ge = static_cast<u8>(bits(status, 16, 4));
    core.it = static_cast<u8>((bits(status, 10, 6) << 2) | bits(status, 25, 2));
    current = status & 0x1FF;
    control = (control & ~(kFpActive | kSecureFpActive)) | (fp ? kFpActive : 0) |
              ((status & kStackedSfpa) != 0 ? kSecureFpActive : 0);
    core.exclusive = false;
    apply_mode();
    if ((status & kThumbBit) == 0) return handle_fault(Fault::InvalidState, 0);
    if (to_thread && (scs.scr & Scs::kSleepOnExit) != 0) machine_.sleeping = true;
}

// --- floating point
// -----------------------------------------------------------------------------------------------------

std::optional<Fault> Exceptions::activate_fp() {
    Core& core = machine_.core;
    Scs& scs = machine_.scs;
    if (!scs.fp_enabled(core.privileged)) return Fault::NoCoprocessor;
    if ((scs.fpccr & Scs::kLspact) != 0) {
        const bool privileged = (scs.fpccr & Scs::kFpUser) == 0;
        std::optional<Fault> failed;
        const auto save = [&](u32 offset, u32 value) {
            if (!failed) failed = machine_.memory.write(scs.fpcar + offset, 4, privileged, kAligned, value);
        };
        const u32 registers = (scs.fpccr & Scs::kTs) != 0 ? 32 : 16;
        for (u32 i = 0; i < registers; i++) save((i < 16 ? 0 : 8) + 4 * i, core.f[i]);
        save(0x40, core.fpscr);
        scs.fpccr &= ~Scs::kLspact;
        if (failed) {
            update_fp_ready();
            return *failed == Fault::DataBus ? Fault::LazyBus : Fault::LazyAccess;
        }
    }
    const u32 active = kFpActive | kSecureFpActive;
    if ((scs.fpccr & Scs::kAspen) != 0 && (control & active) != active) {
        core.fpscr = scs.fpdscr;
        control |= active;
    }
    update_fp_ready();
    return std::nullopt;
}

// --- special registers
// --------------------------------------------------------------------------------------------------

u32 Exceptions::xpsr() const {
    const Core& core = machine_.core;
    const u32 it = core.it;
    return core.nzcv() | (core.q != 0 ? 1U << 27 : 0) | (bits(it, 0, 2) << 25) | (thumb ? kThumbBit : 0) |
           (u32{core.ge} << 16) | (bits(it, 2, 6) << 10) | current;
}

u32 Exceptions::read_special(unsigned sysm, bool privileged) const {
    if (sysm < 8) {
        u32 value = 0;
        if (bit(sysm, 0) && privileged) value |= current;
        if (!bit(sysm, 2)) value |= xpsr() & 0xF80F0000U;
        return value;
    }
    if (sysm == 20) return control;
    if (!privileged) return 0;
    switch (sysm) {
        case 8:
            return main_stack();
        case 9:
            return process_stack();
        case 10:
            return main_limit_;
        case 11:
            return process_limit_;
        case 16:
            return primask ? 1 : 0;
        case 17:
        case 18:
            return basepri;
        case 19:
            return faultmask ? 1 : 0;
        case 0x88:
            return nonsecure_[0];
        case 0x89:
            return nonsecure_[1];
        case 0x8A:
            return nonsecure_[2];
        case 0x8B:
            return nonsecure_[3];
        case 0x90:
            return nonsecure_[4];
        case 0x91:
            return nonsecure_[5];
        case 0x93:
            return nonsecure_[6];
        case 0x94:
            return nonsecure_[7];
        default:
            return 0;
    }
}

void Exceptions::write_special(unsigned sysm, unsigned mask, u32 value) {
    Core& core = machine_.core;
    if (sysm < 4) {
        if (bit(mask, 1)) {
            core.set_nzcv(value);
            core.q = bit(value, 27) ? 1 : 0;
        }
        if (bit(mask, 0)) core.ge = static_cast<u8>(bits(value, 16, 4));
        return;
    }
    if (!core.privileged) return;
    const u8 priority = static_cast<u8>(value & Nvic::kPriorityBits);
    switch (sysm) {
        case 8:
            set_main_stack(value);
            break;
        case 9:
            set_process_stack(value);
            break;
        case 10:
            main_limit_ = value & ~7U;
            break;
        case 11:
            process_limit_ = value & ~7U;
            break;
        case 16:
            primask = bit(value, 0);
            break;
        case 17:
            basepri = priority;
            break;
        case 18:
            if (priority != 0 && (basepri == 0 || priority < basepri)) basepri = priority;
            break;
        case 19:
            if (!bit(value, 0) || execution_priority() > -1) faultmask = bit(value, 0);
            break;
        case 20: {
            u32 writable = kUnprivilegedThread | kFpActive | kSecureFpActive;
            if (current == 0) writable |= kProcessStack;
            control = (control & ~writable) | (value & writable);
            break;
        }
        case 0x88:
            nonsecure_[0] = value & ~3U;
            break;
        case 0x89:
            nonsecure_[1] = value & ~3U;
            break;
        case 0x8A:
            nonsecure_[2] = value & ~7U;
            break;
        case 0x8B:
            nonsecure_[3] = value & ~7U;
            break;
        case 0x90:
            nonsecure_[4] = value & 1;
            break;
        case 0x91:
            nonsecure_[5] = priority;
            break;
        case 0x93:
            nonsecure_[6] = value & 1;
            break;
        case 0x94:
            nonsecure_[7] = value & 3;
            break;
        default:
            break;
    }
    apply_mode();
}

}  // namespace talpa::board::cpu
