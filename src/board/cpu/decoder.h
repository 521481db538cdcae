// From halfwords to micro-operations. Pure: no memory, no machine; what an instruction becomes depends only on its
// bits, its address and its place in an IT block. decode16.cpp and decode32*.cpp follow the encoding tables of the
// architecture manual (Armv8-M, chapter C2.3); anything unallocated becomes `undefined`.
#pragma once

#include <vector>

#include "board/cpu/exec_data.h"
#include "board/cpu/op.h"

namespace talpa::board::cpu {

struct Instruction {
    u32 pc = 0;
    u32 first = 0;   ///< first halfword
    u32 second = 0;  ///< second halfword of a 32-bit instruction
    u8 it = 0;       ///< ITSTATE that applies to it
    unsigned size = 2;

    [[nodiscard]] bool in_it() const { return it != 0; }
    /// What the instruction reads as PC.
    [[nodiscard]] u32 pc_value() const { return pc + 4; }
    [[nodiscard]] u32 literal_base() const { return (pc + 4) & ~3U; }
    [[nodiscard]] u32 next() const { return pc + size; }
};

[[nodiscard]] constexpr bool is_wide(u32 first) {
    return (first & 0xF800) >= 0xE800;
}

/// Collects the micro-operations of a block.
class Emitter {
  public:
    std::vector<Op> ops;
    bool ended = false;       ///< the last instruction always leaves the block
    bool barrier = false;     ///< decode nothing behind the last instruction in this block
    bool fp_checked = false;  ///< an unconditional FP check has been emitted in this block
    u8 next_it = 0;           ///< ITSTATE for the following instruction

    void begin(const Instruction& instruction) { current_ = instruction; }

    template <Body B>
    Op& add() {
        Op& op = ops.emplace_back();
        set_body<B>(op);
        op.pc = current_.pc;
        op.it = current_.it;
        return op;
    }
    /// Puts the FP check before an FP instruction unless an earlier one of the block has passed for sure.
    void check_fp();

  private:
    Instruction current_{};  ///< a copy: the block's end is emitted after the decoder's loop is over
};

/// Appends the instruction's operations. `emitter.begin` has been called with it.
void decode16(const Instruction& instruction, Emitter& emitter);
void decode32(const Instruction& instruction, Emitter& emitter);

// Shared by the decoders
// ------------------------------------------------------------------------------------------------

void emit_undefined(Emitter& e);

struct Operand2 {
    Operand kind = Operand::Immediate;
    u32 imm = 0;  ///< value, or shift amount
    u8 rm = 0;
    u8 aux = kCarryKept;  ///< carry of an immediate, or shift kind

    [[nodiscard]] static Operand2 immediate(u32 value, u8 carry = kCarryKept) {
        return {Operand::Immediate, value, 0, carry};
    }
    [[nodiscard]] static Operand2 reg(unsigned rm) { return {Operand::Register, 0, static_cast<u8>(rm), 0}; }
    /// As DecodeImmShift: LSR/ASR 0 means 32, ROR 0 means RRX.
    [[nodiscard]] static Operand2 shifted(unsigned rm, unsigned kind, unsigned amount);
};

/// rd = rn OP operand with the rules for SP as destination; rn, rm and rd may be 15 where the encoding allows it (the
/// destination PC is a plain branch).
void emit_data(Emitter& e, const Instruction& i, Alu alu, bool set_flags, unsigned rd, unsigned rn, Operand2 operand);
void emit_shift_register(Emitter& e, unsigned kind, bool set_flags, unsigned rd, unsigned rn, unsigned rm);
void emit_branch_if(Emitter& e, const Instruction& i, unsigned condition, u32 target);
/// Loads and stores: `kind` as Width; the byte, half and word forms of rn + offset.
enum class Transfer : u8 { Store, Load };
void emit_transfer(Emitter& e, Transfer t, unsigned width, unsigned address_mode, unsigned rt, unsigned rn, unsigned rm,
                   u32 imm, unsigned shift);
void emit_multiple(Emitter& e, Transfer t, unsigned rn, u32 list, bool down, bool write_back);
void emit_extend(Emitter& e, unsigned kind, unsigned rd, unsigned rn, unsigned rm,
                 unsigned rotation);  // rn 15: no addition
void emit_hint(Emitter& e, unsigned hint);

// 32-bit groups, one file each.
void decode_data32(const Instruction& i,
                   Emitter& e);  // decode32_data.cpp: modified and plain immediates, shifted registers
void decode_register32(const Instruction& i, Emitter& e);  // decode32_register.cpp: register forms, parallel, multiply
void decode_memory32(const Instruction& i, Emitter& e);    // decode32_memory.cpp
void decode_system32(const Instruction& i, Emitter& e);    // decode32_system.cpp: branches and miscellaneous control
void decode_coprocessor32(const Instruction& i, Emitter& e);  // decode32_fpu.cpp

}  // namespace talpa::board::cpu
