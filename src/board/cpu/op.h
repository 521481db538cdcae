// A decoded micro-operation: what one instruction (or one of the few steps of one, or a fused pair) does, ready to run.
//
// An instruction's meaning is a Body: a small function over the core and the operands. `threaded<Body>` makes the
// interpreter's form of it, which jumps to the next operation by itself (a sibling call); translated code calls Bodies
// that it has no template for. A Body returns false when the block ends with it: by a branch, a fault or a signal.
#pragma once

#include "board/cpu/core.h"

namespace talpa::board::cpu {

struct Op;
using Body = bool (*)(Core&, const Op&);
using Threaded = void (*)(Core*, const Op*);

struct Op {
    Threaded threaded = nullptr;
    Body body = nullptr;
    u32 imm = 0;   ///< immediate, offset, target or register list
    u32 imm2 = 0;  ///< second immediate: fall-through address
    u32 pc = 0;    ///< address of the instruction
    u8 rd = 0;
    u8 rn = 0;
    u8 rm = 0;
    u8 ra = 0;
    u8 aux = 0;        ///< shift kind, carry of an immediate, flags of a multiple transfer
    u8 it = 0;         ///< ITSTATE at this instruction
    u8 size = 0;       ///< bytes of the instruction; 0 for a further step of the same one
    u8 remaining = 0;  ///< instructions from this one to the end of the block: what a fault here leaves undone
};

/// How the last carry-out is made by an immediate operand.
enum ImmediateCarry : u8 { kCarryClear = 0, kCarrySet = 1, kCarryKept = 2 };
enum ShiftKind : u8 { kLsl = 0, kLsr = 1, kAsr = 2, kRor = 3, kRrx = 4 };

template <Body B>
void threaded(Core* core, const Op* op) {
    if (!B(*core, *op)) return;
    return op[1].threaded(core, op + 1);
}

/// Sets what runs an operation.
template <Body B>
void set_body(Op& op) {
    op.threaded = &threaded<B>;
    op.body = B;
}

/// Ends the block at `op` with a fault; the instruction has done nothing.
bool raise(Core& core, const Op& op, Fault fault, u32 address = 0);
/// Ends the block behind `op` with a signal.
bool stop_behind(Core& core, const Op& op, Signal signal);

}  // namespace talpa::board::cpu
