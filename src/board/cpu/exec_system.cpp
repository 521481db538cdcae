#include "board/cpu/exec_system.h"

#include <atomic>

#include "board/cpu/exec_branch.h"
#include "board/cpu/machine.h"

namespace talpa::board::cpu {

bool raise(Core& core, const Op& op, Fault fault, u32 address) {
    core.signal = Signal::Fault;
    core.fault = fault;
    core.fault_address = address;
    core.pc = op.pc;
    core.it = op.it;
    core.budget += op.remaining;  // this instruction and those behind it have not been executed
    return false;
}

bool stop_behind(Core& core, const Op& op, Signal signal) {
    core.signal = signal;
    core.pc = op.pc + op.size;
    core.it = advance_it(op.it);
    return false;
}

bool traps_division_by_zero(const Core& core) {
    return (core.machine->scs.ccr & Scs::kDivideTrap) != 0;
}

bool mrs(Core& core, const Op& op) {
    core.r[op.rd] = core.machine->exceptions.read_special(op.imm, core.privileged);
    if (op.rd == kSp) core.r[kSp] &= ~3U;
    return true;
}

bool msr(Core& core, const Op& op) {
    core.machine->exceptions.write_special(op.imm, op.aux, core.r[op.rn]);
    return stop_behind(core, op, Signal::Reschedule);
}

bool cps(Core& core, const Op& op) {
    Exceptions& exceptions = core.machine->exceptions;
    if (core.privileged) {
        if ((op.aux & 2) != 0) exceptions.write_special(16, 0, op.imm);
        if ((op.aux & 1) != 0) exceptions.write_special(19, 0, op.imm);
    }
    return stop_behind(core, op, Signal::Reschedule);
}

bool svc(Core& core, const Op& op) {
    return stop_behind(core, op, Signal::SupervisorCall);
}

bool bkpt(Core& core, const Op& op) {
    core.signal = Signal::Breakpoint;
    core.fault_address = op.imm;
    core.pc = op.pc;
    core.it = op.it;
    core.budget += op.remaining;
    return false;
}

bool undefined(Core& core, const Op& op) {
    return raise(core, op, Fault::Undefined);
}

bool no_coprocessor(Core& core, const Op& op) {
    const bool fp = op.imm == 10 || op.imm == 11;
    const bool enabled = fp && core.machine->scs.fp_enabled(core.privileged);
    return raise(core, op, enabled ? Fault::Undefined : Fault::NoCoprocessor);
}

bool secure_only(Core& core, const Op& op) {
    const u32 target = core.r[op.rm];
    if ((target & 1) == 0) return raise(core, op, Fault::Secure);
    if (op.aux == 0) return interworking_branch(core, target);
    core.r[kLr] = op.imm2;
    core.pc = target & ~1U;
    return false;
}

bool wfi(Core& core, const Op& op) {
    return stop_behind(core, op, Signal::WaitInterrupt);
}

bool wfe(Core& core, const Op& op) {
    return stop_behind(core, op, Signal::WaitEvent);
}

bool sev(Core& core, const Op& /*op*/) {
    core.event = true;
    return true;
}

bool barrier(Core& /*core*/, const Op& /*op*/) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return true;
}

bool instruction_barrier(Core& core, const Op& op) {
    return stop_behind(core, op, Signal::Reschedule);
}

bool prepare_fp(Core& core, const Op& op) {
    core.machine->note_progress(op);
    if (auto fault = core.machine->exceptions.activate_fp()) return raise(core, op, *fault);
    return true;
}

bool test_target(Core& core, const Op& op) {
    Machine& machine = *core.machine;
    const bool unprivileged = (op.aux & 1) != 0;
    const bool alternate = (op.aux & 2) != 0;  // the non-secure view: nothing is accessible
    const u32 address = core.r[op.rn];
    const bool privileged = core.privileged && !unprivileged;
    u32 result = 0;
    if (!alternate) {
        const int region = machine.mpu.enabled() ? machine.mpu.region_of(address) : -1;
        if (region >= 0) result |= w(region) | (1U << 16);
        const bool negative = machine.exceptions.negative_priority();
        if (machine.mpu.check(address, privileged, Use::Read, negative).allowed) result |= 1U << 18;
        if (machine.mpu.check(address, privileged, Use::Write, negative).allowed) result |= 1U << 19;
        result |= 1U << 22;  // S: everything is Secure
    }
    core.r[op.rd] = result;
    return true;
}

bool fetch_fault(Core& core, const Op& op) {
    return raise(core, op, static_cast<Fault>(op.aux), op.pc);
}

}  // namespace talpa::board::cpu
