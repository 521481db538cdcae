// The floating-point instructions, and what remains of the coprocessor space: absent (manual C2.4).
#include "board/cpu/decoder.h"
#include "board/cpu/exec_fpu.h"
#include "board/cpu/exec_system.h"

namespace talpa::board::cpu {

namespace {

using float32::Round;

void emit_no_coprocessor(const Instruction& i, Emitter& e) {
    Op& op = e.add<no_coprocessor>();
    op.imm = bits(i.second, 8, 4);
    e.ended = true;
}

/// S register numbers: the four-bit field and its extra low bit.
u8 s_register(u32 field, bool low) {
    return static_cast<u8>(field * 2 + (low ? 1 : 0));
}

struct Registers {
    u8 d;
    u8 n;
    u8 m;
};
Registers s_registers(const Instruction& i) {
    return {s_register(bits(i.second, 12, 4), bit(i.first, 6)), s_register(bits(i.first, 0, 4), bit(i.second, 7)),
            s_register(bits(i.second, 0, 4), bit(i.second, 5))};
}

template <Body B>
Op& add(Emitter& e, const Registers& r) {
    e.check_fp();
    Op& op = e.add<B>();
    op.rd = r.d;
    op.rn = r.n;
    op.rm = r.m;
    return op;
}

template <Fp2 First, Fp2 Second>
void binary(const Instruction& i, Emitter& e) {
    if (bit(i.second, 6))
        add<fp_binary<Second>>(e, s_registers(i));
    else
        add<fp_binary<First>>(e, s_registers(i));
}

u32 expand_float(u32 imm8) {
    return (bits(imm8, 7, 1) << 31) | ((bit(imm8, 6) ? 0x3E000000U : 0x40000000U) + (bits(imm8, 4, 2) << 23)) |
           (bits(imm8, 0, 4) << 19);
}

void decode_fixed(const Instruction& i, Emitter& e) {
    const bool to_fixed = bit(i.first, 2);
    const bool is_unsigned = bit(i.first, 0);
    const u32 width = bit(i.second, 7) ? 32 : 16;
    const u32 imm = (bits(i.second, 0, 4) << 1) | (bit(i.second, 5) ? 1 : 0);
    if (imm > width) return emit_no_coprocessor(i, e);
    Registers r = s_registers(i);
    r.m = r.d;
    Op& op = to_fixed ? (is_unsigned ? add<fp_to_fixed<true>>(e, r) : add<fp_to_fixed<false>>(e, r))
                      : (is_unsigned ? add<fp_from_fixed<true>>(e, r) : add<fp_from_fixed<false>>(e, r));
    op.imm = width - imm;
    op.imm2 = width;
    op.aux = static_cast<u8>(to_fixed ? Round::Zero : Round::Nearest);
}

void decode_unary(const Instruction& i, Emitter& e) {
    const Registers r = s_registers(i);
    const bool high = bit(i.second, 7);
    switch (bits(i.first, 0, 4)) {
        case 0:
            high ? add<fp_unary<Fp1::Abs>>(e, r) : add<fp_unary<Fp1::Move>>(e, r);
            return;
        case 1:
            high ? add<fp_unary<Fp1::Sqrt>>(e, r) : add<fp_unary<Fp1::Neg>>(e, r);
            return;
        case 2:
            add<fp_from_half>(e, r).aux = high ? 16 : 0;
            return;
        case 3:
            add<fp_to_half>(e, r).aux = high ? 16 : 0;
            return;
        case 4:
            add<fp_compare<false>>(e, r).aux = high ? 1 : 0;
            return;
        case 5:
            add<fp_compare<true>>(e, r).aux = high ? 1 : 0;
            return;
        case 6: {
            Op& op = add<fp_round>(e, r);
            op.aux = high ? static_cast<u8>(Round::Zero) : kModeOfFpscr;
            return;
        }
        case 7: {
            if (high) return emit_no_coprocessor(i, e);  // to double precision
            Op& op = add<fp_round>(e, r);
            op.aux = kModeOfFpscr;
            op.imm = 1;
            return;
        }
        case 8: {
            Op& op = high ? add<fp_from_fixed<false>>(e, r) : add<fp_from_fixed<true>>(e, r);
            op.imm2 = 32;
            op.aux = kModeOfFpscr;
            return;
        }
        case 12:
        case 13: {
            Op& op = bit(i.first, 0) ? add<fp_to_fixed<false>>(e, r) : add<fp_to_fixed<true>>(e, r);
            op.imm2 = 32;
            op.aux = high ? static_cast<u8>(Round::Zero) : kModeOfFpscr;
            return;
        }
        case 10:
        case 11:
        case 14:
        case 15:
            return decode_fixed(i, e);
        default:
            return emit_no_coprocessor(i, e);
    }
}

void decode_data_processing(const Instruction& i, Emitter& e) {
    if (bit(i.second, 8)) return emit_no_coprocessor(i, e);  // double precision
    switch ((bit(i.first, 7) ? 4U : 0U) | bits(i.first, 4, 2)) {
        case 0:
            return binary<Fp2::Mla, Fp2::Mls>(i, e);
        case 1:
            return binary<Fp2::Nmls, Fp2::Nmla>(i, e);
        case 2:
            return binary<Fp2::Mul, Fp2::Nmul>(i, e);
        case 3:
            return binary<Fp2::Add, Fp2::Sub>(i, e);
        case 4:
            if (bit(i.second, 6)) return emit_no_coprocessor(i, e);
            add<fp_binary<Fp2::Div>>(e, s_registers(i));
            return;
        case 5:
            return binary<Fp2::Fnms, Fp2::Fnma>(i, e);
        case 6:
            return binary<Fp2::Fma, Fp2::Fms>(i, e);
        default:
            break;
    }
    if (bit(i.second, 6)) return decode_unary(i, e);
    if (bit(i.second, 7) || bit(i.second, 5)) return emit_no_coprocessor(i, e);
    add<fp_immediate>(e, s_registers(i)).imm = expand_float((bits(i.first, 0, 4) << 4) | bits(i.second, 0, 4));
}

/// The unconditional ones: VSEL, VMAXNM, VMINNM, VCVT and VRINT with their own rounding.
void decode_unconditional(const Instruction& i, Emitter& e) {
    if (bit(i.second, 8) || bit(i.second, 4) || bits(i.first, 8, 4) != 14) return emit_no_coprocessor(i, e);
    const Registers r = s_registers(i);
    static constexpr Round kModes[] = {Round::TiesAway, Round::Nearest, Round::Up, Round::Down};
    if (!bit(i.first, 7)) {
        if (bit(i.second, 6)) return emit_no_coprocessor(i, e);
        static constexpr u8 kConditions[] = {0, 6, 10, 12};  // EQ VS GE GT
        add<fp_select>(e, r).aux = kConditions[bits(i.first, 4, 2)];
        return;
    }
    if (bits(i.first, 4, 2) == 0) {
        bit(i.second, 6) ? add<fp_binary<Fp2::Minnm>>(e, r) : add<fp_binary<Fp2::Maxnm>>(e, r);
        return;
    }
    if (bits(i.first, 4, 2) != 3 || !bit(i.second, 6) || !bit(i.first, 3)) return emit_no_coprocessor(i, e);
    const Round mode = kModes[bits(i.first, 0, 2)];
    if (bit(i.first, 2)) {
        Op& op = bit(i.second, 7) ? add<fp_to_fixed<false>>(e, r) : add<fp_to_fixed<true>>(e, r);
        op.imm2 = 32;
        op.aux = static_cast<u8>(mode);
        return;
    }
    if (bit(i.second, 7)) return emit_no_coprocessor(i, e);
    add<fp_round>(e, r).aux = static_cast<u8>(mode);
}

/// One core register to or from the FP registers.
void decode_transfer(const Instruction& i, Emitter& e) {
    const bool to_core = bit(i.first, 4);
    const unsigned rt = bits(i.second, 12, 4);
    const unsigned opcode = bits(i.first, 5, 3);
    if (bit(i.second, 8)) {  // VMOV Dn[x]
        if (opcode > 1 || bits(i.second, 5, 2) != 0 || bit(i.second, 7) || rt == kPc) return emit_no_coprocessor(i, e);
        const Registers r = {static_cast<u8>(rt), 0, s_register(bits(i.first, 0, 4), opcode == 1)};
        to_core ? add<fp_to_core>(e, r) : add<fp_from_core>(e, r);
        return;
    }
    if (opcode == 0) {
        if (rt == kPc) return emit_no_coprocessor(i, e);
        const Registers r = {static_cast<u8>(rt), 0, s_register(bits(i.first, 0, 4), bit(i.second, 7))};
        to_core ? add<fp_to_core>(e, r) : add<fp_from_core>(e, r);
        return;
    }
    if (opcode != 7 || bits(i.first, 0, 4) != 1) return emit_no_coprocessor(i, e);
    const Registers r = {static_cast<u8>(rt), 0, 0};
    if (!to_core && rt != kPc)
        add<vmsr>(e, r);
    else if (to_core)
        rt == kPc ? add<vmrs_flags>(e, r) : add<vmrs>(e, r);
    else
        emit_no_coprocessor(i, e);
}

void decode_pair(const Instruction& i, Emitter& e) {
    const bool to_core = bit(i.first, 4);
    const bool d = bit(i.second, 8);
    if (bits(i.second, 6, 2) != 0 || !bit(i.second, 4) || (d && bit(i.second, 5))) return emit_no_coprocessor(i, e);
    const u8 low = d ? s_register(bits(i.second, 0, 4), false) : s_register(bits(i.second, 0, 4), bit(i.second, 5));
    if (low == 31 || bits(i.second, 12, 4) == kPc || bits(i.first, 0, 4) == kPc) return emit_no_coprocessor(i, e);
    const Registers r = {static_cast<u8>(bits(i.second, 12, 4)), 0, low};
    Op& op = to_core ? add<fp_to_core_pair>(e, r) : add<fp_from_core_pair>(e, r);
    op.ra = static_cast<u8>(bits(i.first, 0, 4));
}

void decode_load_store(const Instruction& i, Emitter& e) {
    const bool p = bit(i.first, 8);
    const bool u = bit(i.first, 7);
    const bool wb = bit(i.first, 5);
    const bool is_load = bit(i.first, 4);
    const bool d = bit(i.second, 8);
    const unsigned rn = bits(i.first, 0, 4);
    const u32 imm8 = i.second & 0xFF;
    if (!p && !u) {
        if (bit(i.first, 6) && !wb) return decode_pair(i, e);
        if (!bit(i.first, 6) && wb && i.second == 0x0A00) {
            e.add<fp_lazy_security>();
            return;
        }
        return emit_no_coprocessor(i, e);
    }
    if (d && bit(i.first, 6)) return emit_no_coprocessor(i, e);  // D16 and up
    const u8 first = d ? s_register(bits(i.second, 12, 4), false) : s_register(bits(i.second, 12, 4), bit(i.first, 6));
    const Registers r = {first, static_cast<u8>(rn), 0};
    if (p && !wb) {
        Op& op = is_load ? (d ? add<fp_transfer<true, 2>>(e, r) : add<fp_transfer<true, 1>>(e, r))
                         : (d ? add<fp_transfer<false, 2>>(e, r) : add<fp_transfer<false, 1>>(e, r));
        op.imm = (u ? imm8 * 4 : 0U - imm8 * 4) + (rn == kPc ? i.literal_base() : 0);
        return;
    }
    const u32 count = d ? imm8 & ~1U : imm8;
    if ((p && u) || count == 0 || first + count > 32 || (rn == kPc && wb)) return emit_no_coprocessor(i, e);
    Op& op = is_load ? add<fp_multiple<true>>(e, r) : add<fp_multiple<false>>(e, r);
    op.ra = static_cast<u8>(count);
    op.imm = imm8 * 4;
    op.imm2 = i.literal_base();
    op.aux = static_cast<u8>((u ? 0 : kMultipleDown) | (wb ? kMultipleWriteBack : 0));
}

}  // namespace

void decode_coprocessor32(const Instruction& i, Emitter& e) {
    if (bits(i.first, 8, 2) == 3) return emit_undefined(e);  // vector instructions of later architectures
    if (bits(i.second, 9, 3) != 5) return emit_no_coprocessor(i, e);
    if (bit(i.first, 12)) return decode_unconditional(i, e);
    if (bits(i.first, 8, 4) != 14) return decode_load_store(i, e);
    return bit(i.second, 4) ? decode_transfer(i, e) : decode_data_processing(i, e);
}

}  // namespace talpa::board::cpu
