// The frames of exceptions: pushed at the entry, popped at the return, and the place for FP registers in them that is
// filled only when the handler uses the FPU (manual B3.19, B3.20).
#include <algorithm>

#include "board/cpu/exception_bits.h"
#include "board/cpu/exceptions.h"
#include "board/cpu/float32.h"
#include "board/cpu/machine.h"

namespace talpa::board::cpu {

namespace {

constexpr u32 kBasicFrame = 0x20;
constexpr u32 kFpFrame = 0x68;
constexpr u32 kFullFpFrame = 0xA8;

// Behind the basic frame, and at FPCAR: S0 to S15, FPSCR, a free word, S16 to S31.
constexpr u32 kFpscrOffset = 0x40;
constexpr u32 fp_offset(u32 i) {
    return 4 * i + (i < 16 ? 0 : 8);
}
/// With FPCCR.TS the callee-saved ones too.
u32 fp_registers(const Scs& scs) {
    return (scs.fpccr & Scs::kTs) != 0 ? 32 : 16;
}
u32 frame_size(const Scs& scs, bool fp) {
    return !fp ? kBasicFrame : (scs.fpccr & Scs::kTs) != 0 ? kFullFpFrame : kFpFrame;
}

}  // namespace

void Exceptions::push_frame(u32 return_address) {
    Core& core = machine_.core;
    Scs& scs = machine_.scs;
    const bool fp = (control & kFpActive) != 0;
    const u32 size = frame_size(scs, fp);
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
    for (u32 i = 0; i < fp_registers(scs); i++)
        if (!push(frame + kBasicFrame + fp_offset(i), core.f[i])) return;
    push(frame + kBasicFrame + kFpscrOffset, core.fpscr);
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

/// A fault on the way back: the handler for it is tail-chained.
void Exceptions::unstacking_failed(Fault fault, u32 exc_return) {
    switch_stack(false);
    stacking_failed(fault, true);
    if (!locked_up) take(machine_.nvic.highest_pending(), exc_return);
}

/// The FP part of a frame, which starts at `address`.
std::optional<Fault> Exceptions::pop_fp(u32 address, bool privileged) {
    Core& core = machine_.core;
    Scs& scs = machine_.scs;
    if ((scs.fpccr & Scs::kLspact) != 0) {
        scs.fpccr &= ~Scs::kLspact;  // never stacked: the registers still hold the context
        return std::nullopt;
    }
    if (!scs.fp_enabled(privileged)) return Fault::NoCoprocessor;
    const u32 registers = fp_registers(scs);
    u32 values[32];
    u32 fpscr = 0;
    const auto pop = [&](u32 offset, u32& value) {
        return machine_.memory.read(address + offset, 4, privileged, kAligned, value);
    };
    for (u32 i = 0; i < registers; i++)
        if (const auto fault = pop(fp_offset(i), values[i])) return fault;
    if (const auto fault = pop(kFpscrOffset, fpscr)) return fault;
    std::copy_n(values, registers, core.f.begin());
    core.fpscr = fpscr & float32::kWritable;
    return std::nullopt;
}

void Exceptions::pop_frame(u32 exc_return) {
    Core& core = machine_.core;
    const bool to_thread = (exc_return & kToThread) != 0;
    const bool fp = (exc_return & kNoFpFrame) == 0;
    const bool privileged = !to_thread || (control & kUnprivilegedThread) == 0;
    switch_stack(to_thread && (exc_return & kToProcessStack) != 0);
    const u32 frame = core.r[kSp];
    u32 words[8];
    for (u32 i = 0; i < 8; i++)
        if (const auto fault = machine_.memory.read(frame + 4 * i, 4, privileged, kAligned, words[i]))
            return unstacking_failed(*fault, exc_return);
    const u32 status = words[7];
    if (((status & 0x1FF) == 0) != to_thread) {
        switch_stack(false);
        return invalid_return(exc_return);
    }
    if (fp)
        if (const auto fault = pop_fp(frame + kBasicFrame, privileged)) return unstacking_failed(*fault, exc_return);
    core.r[kSp] = (frame + frame_size(machine_.scs, fp)) | ((status & kRealigned) != 0 ? 4U : 0U);
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
    if (to_thread && (machine_.scs.scr & Scs::kSleepOnExit) != 0) machine_.sleeping = true;
}

/// Fills the place that prepare_lazy left, with the rights of the code that was interrupted.
std::optional<Fault> Exceptions::save_lazy() {
    Scs& scs = machine_.scs;
    const bool privileged = (scs.fpccr & Scs::kFpUser) == 0;
    std::optional<Fault> failed;
    const auto save = [&](u32 offset, u32 value) {
        if (!failed) failed = machine_.memory.write(scs.fpcar + offset, 4, privileged, kAligned, value);
    };
    for (u32 i = 0; i < fp_registers(scs); i++) save(fp_offset(i), machine_.core.f[i]);
    save(kFpscrOffset, machine_.core.fpscr);
    scs.fpccr &= ~Scs::kLspact;
    if (failed) return *failed == Fault::DataBus ? Fault::LazyBus : Fault::LazyAccess;
    return std::nullopt;
}

std::optional<Fault> Exceptions::activate_fp() {
    Core& core = machine_.core;
    const Scs& scs = machine_.scs;
    if (!scs.fp_enabled(core.privileged)) return Fault::NoCoprocessor;
    std::optional<Fault> fault;
    if ((scs.fpccr & Scs::kLspact) != 0) fault = save_lazy();
    const u32 active = kFpActive | kSecureFpActive;
    if (!fault && (scs.fpccr & Scs::kAspen) != 0 && (control & active) != active) {
        core.fpscr = scs.fpdscr;
        control |= active;
    }
    update_fp_ready();
    return fault;
}

}  // namespace talpa::board::cpu
