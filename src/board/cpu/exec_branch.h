// Branches: each ends its block and leaves the next address in core.pc.
#pragma once

#include "board/cpu/memory_access.h"

namespace talpa::board::cpu {

inline bool branch(Core& c, const Op& op) {
    c.pc = op.imm;
    return false;
}

/// Taken: imm; not taken: imm2.
template <unsigned Condition>
bool branch_if(Core& c, const Op& op) {
    c.pc = condition_holds(c, Condition) ? op.imm : op.imm2;
    return false;
}

template <bool NonZero>
bool branch_on_register(Core& c, const Op& op) {
    c.pc = (c.r[op.rn] != 0) == NonZero ? op.imm : op.imm2;
    return false;
}

/// imm2 is the return address with its Thumb bit.
inline bool branch_link(Core& c, const Op& op) {
    c.r[kLr] = op.imm2;
    c.pc = op.imm;
    return false;
}

/// A write to PC that may change state (BX, POP, LDR): EXC_RETURN values count in Handler mode only, and an even
/// address clears EPSR.T, so that the next instruction faults.
inline bool interworking_branch(Core& c, u32 target) {
    if (c.handler_mode && (target >> 24) == 0xFF) [[unlikely]] {
        c.pc = target;
        c.signal = Signal::ExceptionReturn;
        return false;
    }
    c.pc = target & ~1U;
    if ((target & 1) == 0) [[unlikely]]
        c.signal = Signal::InvalidState;
    return false;
}

inline bool branch_exchange(Core& c, const Op& op) {
    return interworking_branch(c, c.r[op.rm]);
}

/// BLX: never an exception return.
inline bool branch_link_exchange(Core& c, const Op& op) {
    const u32 target = c.r[op.rm];
    c.r[kLr] = op.imm2;
    c.pc = target & ~1U;
    if ((target & 1) == 0) [[unlikely]]
        c.signal = Signal::InvalidState;
    return false;
}

/// MOV PC and ADD PC: bit 0 does not matter. The target is in r[15].
inline bool branch_to_pc(Core& c, const Op& /*op*/) {
    c.pc = c.r[kPc] & ~1U;
    return false;
}

/// TBB, TBH: imm is the address of the following instruction; rn = 15 has been exposed.
template <bool Half>
bool table_branch(Core& c, const Op& op) {
    u32 entry;
    const u32 base = op.rn == kPc ? op.imm : c.r[op.rn];
    if constexpr (Half) {
        if (!load<u16>(c, op, base + 2 * c.r[op.rm], entry)) return false;
    } else {
        if (!load<u8>(c, op, base + c.r[op.rm], entry)) return false;
    }
    c.pc = op.imm + 2 * entry;
    return false;
}

/// The end of a block that no branch ended; `aux` is the ITSTATE to go on with.
inline bool block_end(Core& c, const Op& op) {
    c.pc = op.imm;
    c.it = op.aux;
    return false;
}

/// Skips `rd` micro-operations unless the condition holds: what an IT block becomes. It has no Body, since a Body
/// cannot skip.
template <unsigned Condition>
void skip_unless(Core* core, const Op* op) {
    const Op* next = op + 1 + (condition_holds(*core, Condition) ? 0 : op->rd);
    return next->threaded(core, next);
}

}  // namespace talpa::board::cpu
