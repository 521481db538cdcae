// The 16-bit instructions, by the upper bits of the halfword (manual table C2.2).
#include "board/cpu/decoder.h"
#include "board/cpu/exec_branch.h"
#include "board/cpu/exec_memory.h"
#include "board/cpu/exec_multiply.h"
#include "board/cpu/exec_system.h"

namespace talpa::board::cpu {

namespace {

void decode_shift_add(const Instruction& i, Emitter& e) {
    const u32 h = i.first;
    const bool flags = !i.in_it();
    const unsigned rd = bits(h, 0, 3);
    const unsigned rn = bits(h, 3, 3);
    switch (bits(h, 11, 2)) {
        case 0:
        case 1:
        case 2: {
            const Operand2 operand = Operand2::shifted(rn, bits(h, 11, 2), bits(h, 6, 5));
            return emit_data(e, i, Alu::Mov, flags, rd, 0, operand);
        }
        default: {
            const Alu alu = bit(h, 9) ? Alu::Sub : Alu::Add;
            const unsigned third = bits(h, 6, 3);
            return emit_data(e, i, alu, flags, rd, rn, bit(h, 10) ? Operand2::immediate(third) : Operand2::reg(third));
        }
    }
}

void decode_immediate8(const Instruction& i, Emitter& e) {
    static constexpr Alu kAlu[] = {Alu::Mov, Alu::Cmp, Alu::Add, Alu::Sub};
    const unsigned rd = bits(i.first, 8, 3);
    const Alu alu = kAlu[bits(i.first, 11, 2)];
    emit_data(e, i, alu, alu == Alu::Cmp || !i.in_it(), rd, rd, Operand2::immediate(i.first & 0xFF));
}

void decode_data_register(const Instruction& i, Emitter& e) {
    const bool flags = !i.in_it();
    const unsigned rdn = bits(i.first, 0, 3);
    const unsigned rm = bits(i.first, 3, 3);
    const auto alu = [&](Alu a) { emit_data(e, i, a, flags || is_compare(a), rdn, rdn, Operand2::reg(rm)); };
    switch (bits(i.first, 6, 4)) {
        case 0:
            return alu(Alu::And);
        case 1:
            return alu(Alu::Eor);
        case 2:
            return emit_shift_register(e, kLsl, flags, rdn, rdn, rm);
        case 3:
            return emit_shift_register(e, kLsr, flags, rdn, rdn, rm);
        case 4:
            return emit_shift_register(e, kAsr, flags, rdn, rdn, rm);
        case 5:
            return alu(Alu::Adc);
        case 6:
            return alu(Alu::Sbc);
        case 7:
            return emit_shift_register(e, kRor, flags, rdn, rdn, rm);
        case 8:
            return alu(Alu::Tst);
        case 9:
            return emit_data(e, i, Alu::Rsb, flags, rdn, rm, Operand2::immediate(0));
        case 10:
            return alu(Alu::Cmp);
        case 11:
            return alu(Alu::Cmn);
        case 12:
            return alu(Alu::Orr);
        case 13: {
            Op& op = flags ? e.add<muls>() : e.add<mul>();
            op.rd = static_cast<u8>(rdn);
            op.rn = static_cast<u8>(rm);
            op.rm = static_cast<u8>(rdn);
            return;
        }
        case 14:
            return alu(Alu::Bic);
        default:
            return alu(Alu::Mvn);
    }
}

void decode_high_registers(const Instruction& i, Emitter& e) {
    const unsigned rm = bits(i.first, 3, 4);
    const unsigned rdn = bits(i.first, 0, 3) | (bit(i.first, 7) ? 8U : 0U);
    switch (bits(i.first, 8, 2)) {
        case 0:
            return emit_data(e, i, Alu::Add, false, rdn, rdn, Operand2::reg(rm));
        case 1:
            return emit_data(e, i, Alu::Cmp, true, rdn, rdn, Operand2::reg(rm));
        case 2:
            return emit_data(e, i, Alu::Mov, false, rdn, 0, Operand2::reg(rm));
        default:
            break;
    }
    // BX, BLX; with bit 2 the non-secure forms, which switch only when the target's bit 0 is clear.
    if (bit(i.first, 2)) {
        Op& op = e.add<secure_only>();
        op.rm = static_cast<u8>(rm);
        op.aux = bit(i.first, 7) ? 1 : 0;
        op.imm2 = i.next() | 1;
        e.ended = true;
        return;
    }
    Op& op = bit(i.first, 7) ? e.add<branch_link_exchange>() : e.add<branch_exchange>();
    op.rm = static_cast<u8>(rm);
    op.imm2 = i.next() | 1;
    e.ended = true;
}

void decode_transfer(const Instruction& i, Emitter& e) {
    const u32 h = i.first;
    const unsigned rt = bits(h, 0, 3);
    const unsigned rn = bits(h, 3, 3);
    const auto width = [](Width x) { return static_cast<unsigned>(x); };
    const auto mode = [](Address x) { return static_cast<unsigned>(x); };
    if ((h >> 12) == 5) {  // register offset
        struct Row {
            Transfer transfer;
            Width width;
        };
        static constexpr Row kRows[] = {{Transfer::Store, Width::Word}, {Transfer::Store, Width::Half},
                                        {Transfer::Store, Width::Byte}, {Transfer::Load, Width::SignedByte},
                                        {Transfer::Load, Width::Word},  {Transfer::Load, Width::Half},
                                        {Transfer::Load, Width::Byte},  {Transfer::Load, Width::SignedHalf}};
        const Row row = kRows[bits(h, 9, 3)];
        return emit_transfer(e, row.transfer, width(row.width), mode(Address::Register), rt, rn, bits(h, 6, 3), 0, 0);
    }
    const Transfer t = bit(h, 11) ? Transfer::Load : Transfer::Store;
    const u32 imm = bits(h, 6, 5);
    switch (h >> 12) {
        case 6:
            return emit_transfer(e, t, width(Width::Word), mode(Address::Offset), rt, rn, 0, imm * 4, 0);
        case 7:
            return emit_transfer(e, t, width(Width::Byte), mode(Address::Offset), rt, rn, 0, imm, 0);
        case 8:
            return emit_transfer(e, t, width(Width::Half), mode(Address::Offset), rt, rn, 0, imm * 2, 0);
        default:
            return emit_transfer(e, t, width(Width::Word), mode(Address::Offset), bits(h, 8, 3), kSp, 0, (h & 0xFF) * 4,
                                 0);
    }
}

void decode_it(const Instruction& i, Emitter& e) {
    // The operation itself does nothing: the conditions are woven into the instructions that follow.
    e.add<nop>();
    e.next_it = static_cast<u8>(i.first & 0xFF);
}

void decode_miscellaneous(const Instruction& i, Emitter& e) {
    const u32 h = i.first;
    const unsigned rd = bits(h, 0, 3);
    const unsigned rm = bits(h, 3, 3);
    switch (bits(h, 8, 4)) {
        case 0b0000: {
            const u32 imm = (h & 0x7F) * 4;
            return emit_data(e, i, bit(h, 7) ? Alu::Sub : Alu::Add, false, kSp, kSp, Operand2::immediate(imm));
        }
        case 0b0001:
        case 0b0011:
        case 0b1001:
        case 0b1011: {
            Op& op = bit(h, 11) ? e.add<branch_on_register<true>>() : e.add<branch_on_register<false>>();
            op.rn = static_cast<u8>(rd);
            op.imm = i.pc_value() + ((bits(h, 3, 5) << 1) | (bit(h, 9) ? 64U : 0U));
            op.imm2 = i.next();
            e.ended = true;
            return;
        }
        case 0b0010: {
            static constexpr Extend kKinds[] = {Extend::Sxth, Extend::Sxtb, Extend::Uxth, Extend::Uxtb};
            return emit_extend(e, static_cast<unsigned>(kKinds[bits(h, 6, 2)]), rd, kPc, rm, 0);
        }
        case 0b0100:
        case 0b0101:
            return emit_multiple(e, Transfer::Store, kSp, (h & 0xFF) | (bit(h, 8) ? 1U << kLr : 0U), true, true);
        case 0b0110: {
            if (bits(h, 5, 3) != 3 || bit(h, 3) || bit(h, 2)) return emit_undefined(e);
            Op& op = e.add<cps>();
            op.imm = bit(h, 4) ? 1 : 0;
            op.aux = static_cast<u8>(h & 3);
            op.imm2 = i.next();
            e.ended = true;
            return;
        }
        case 0b1010: {
            switch (bits(h, 6, 2)) {
                case 0:
                    e.add<rev>();
                    break;
                case 1:
                    e.add<rev16>();
                    break;
                case 3:
                    e.add<revsh>();
                    break;
                default:
                    return emit_undefined(e);
            }
            e.ops.back().rd = static_cast<u8>(rd);
            e.ops.back().rm = static_cast<u8>(rm);
            return;
        }
        case 0b1100:
        case 0b1101:
            return emit_multiple(e, Transfer::Load, kSp, (h & 0xFF) | (bit(h, 8) ? 1U << kPc : 0U), false, true);
        case 0b1110: {
            Op& op = e.add<bkpt>();
            op.imm = h & 0xFF;
            e.ended = true;
            return;
        }
        case 0b1111:
            return (h & 0xF) != 0 ? decode_it(i, e) : emit_hint(e, bits(h, 4, 4));
        default:
            return emit_undefined(e);
    }
}

void decode_conditional(const Instruction& i, Emitter& e) {
    const unsigned condition = bits(i.first, 8, 4);
    if (condition == 14) return emit_undefined(e);
    if (condition == 15) {
        Op& op = e.add<svc>();
        op.imm = i.next();
        op.aux = advance_it(i.it);
        e.ended = true;
        return;
    }
    emit_branch_if(e, i, condition, i.pc_value() + w(sign_extend(i.first & 0xFF, 8) * 2));
}

}  // namespace

void decode16(const Instruction& i, Emitter& e) {
    const u32 h = i.first;
    switch (h >> 12) {
        case 0x0:
        case 0x1:
            return decode_shift_add(i, e);
        case 0x2:
        case 0x3:
            return decode_immediate8(i, e);
        case 0x4:
            if (bits(h, 10, 2) == 0) return decode_data_register(i, e);
            if (bits(h, 10, 2) == 1) return decode_high_registers(i, e);
            return emit_transfer(e, Transfer::Load, static_cast<unsigned>(Width::Word),
                                 static_cast<unsigned>(Address::Absolute), bits(h, 8, 3), kPc, 0,
                                 i.literal_base() + (h & 0xFF) * 4, 0);
        case 0x5:
        case 0x6:
        case 0x7:
        case 0x8:
        case 0x9:
            return decode_transfer(i, e);
        case 0xA: {
            const u32 imm = (h & 0xFF) * 4;
            if (!bit(h, 11))
                return emit_data(e, i, Alu::Mov, false, bits(h, 8, 3), 0, Operand2::immediate(i.literal_base() + imm));
            return emit_data(e, i, Alu::Add, false, bits(h, 8, 3), kSp, Operand2::immediate(imm));
        }
        case 0xB:
            return decode_miscellaneous(i, e);
        case 0xC: {
            const unsigned rn = bits(h, 8, 3);
            const u32 list = h & 0xFF;
            if (list == 0) return emit_undefined(e);
            if (!bit(h, 11)) return emit_multiple(e, Transfer::Store, rn, list, false, true);
            return emit_multiple(e, Transfer::Load, rn, list, false, !bit(list, rn));
        }
        case 0xD:
            return decode_conditional(i, e);
        default: {
            Op& op = e.add<branch>();
            op.imm = i.pc_value() + w(sign_extend(h & 0x7FF, 11) * 2);
            e.ended = true;
            return;
        }
    }
}

}  // namespace talpa::board::cpu
