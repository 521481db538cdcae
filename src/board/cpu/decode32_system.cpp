// Branches and miscellaneous control (manual C2.3.5).
#include "board/cpu/decoder.h"
#include "board/cpu/exec_branch.h"
#include "board/cpu/exec_memory.h"
#include "board/cpu/exec_system.h"

namespace talpa::board::cpu {

namespace {

/// The 25-bit offset of B.W and BL.
u32 long_offset(const Instruction& i) {
    const bool sign = bit(i.first, 10);
    const bool i1 = bit(i.second, 13) == sign;
    const bool i2 = bit(i.second, 11) == sign;
    const u32 raw = (sign ? 1U << 24 : 0) | (i1 ? 1U << 23 : 0) | (i2 ? 1U << 22 : 0) | (bits(i.first, 0, 10) << 12) |
                    (bits(i.second, 0, 11) << 1);
    return w(sign_extend(raw, 25));
}

void decode_control(const Instruction& i, Emitter& e) {
    switch (bits(i.second, 4, 4)) {
        case 2:
            e.add<clear_exclusive>();
            return;
        case 4:
        case 5:
            e.add<barrier>();
            return;
        case 6:
            e.add<instruction_barrier>();
            e.barrier = true;
            return;
        default:
            return emit_undefined(e);
    }
}

void decode_miscellaneous(const Instruction& i, Emitter& e) {
    const unsigned rn = bits(i.first, 0, 4);
    switch (bits(i.first, 4, 7)) {
        case 0b0111000:
        case 0b0111001: {
            Op& op = e.add<msr>();
            op.rn = static_cast<u8>(rn);
            op.aux = static_cast<u8>(bits(i.second, 10, 2));
            op.imm = i.second & 0xFF;
            e.barrier = true;
            return;
        }
        case 0b0111010:
            return emit_hint(e, (i.second & 0xFF) < 16 ? i.second & 0xFF : 0);
        case 0b0111011:
            return decode_control(i, e);
        case 0b0111110:
        case 0b0111111: {
            Op& op = e.add<mrs>();
            op.rd = static_cast<u8>(bits(i.second, 8, 4));
            op.imm = i.second & 0xFF;
            return;
        }
        default:
            return emit_undefined(e);
    }
}

}  // namespace

void decode_system32(const Instruction& i, Emitter& e) {
    const bool link = bit(i.second, 14);
    const bool plain = bit(i.second, 12);
    if (!plain) {
        if (link) return emit_undefined(e);
        const unsigned condition = bits(i.first, 6, 4);
        if (condition >= 14) return decode_miscellaneous(i, e);
        const u32 raw = (bit(i.first, 10) ? 1U << 20 : 0) | (bit(i.second, 11) ? 1U << 19 : 0) |
                        (bit(i.second, 13) ? 1U << 18 : 0) | (bits(i.first, 0, 6) << 12) | (bits(i.second, 0, 11) << 1);
        return emit_branch_if(e, i, condition, i.pc_value() + w(sign_extend(raw, 21)));
    }
    Op& op = link ? e.add<branch_link>() : e.add<branch>();
    op.imm = i.pc_value() + long_offset(i);
    op.imm2 = i.next() | 1;
    e.ended = true;
}

}  // namespace talpa::board::cpu
