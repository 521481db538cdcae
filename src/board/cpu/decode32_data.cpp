// Data processing with a modified immediate, a plain immediate or a shifted register (manual C2.3.2 to C2.3.4).
#include "board/cpu/decoder.h"
#include "board/cpu/exec_dsp.h"

namespace talpa::board::cpu {

namespace {

/// The 12-bit constant of the modified immediates, with the carry that it makes.
Operand2 expand_immediate(u32 imm12) {
    const u32 byte = imm12 & 0xFF;
    if (bits(imm12, 10, 2) == 0) {
        switch (bits(imm12, 8, 2)) {
            case 0:
                return Operand2::immediate(byte);
            case 1:
                return Operand2::immediate(byte | (byte << 16));
            case 2:
                return Operand2::immediate((byte << 8) | (byte << 24));
            default:
                return Operand2::immediate(byte * 0x01010101U);
        }
    }
    const u32 value = std::rotr(0x80U | (byte & 0x7F), static_cast<int>(bits(imm12, 7, 5)));
    return Operand2::immediate(value, bit(value, 31) ? kCarrySet : kCarryClear);
}

/// Register 15 as destination with S makes a comparison; as first operand of ORR and ORN a move.
void decode_operation(const Instruction& i, Emitter& e, const Operand2& operand) {
    const bool flags = bit(i.first, 4);
    const unsigned rn = bits(i.first, 0, 4);
    const unsigned rd = bits(i.second, 8, 4);
    Alu alu = Alu::And;
    Alu comparing = Alu::And;
    switch (bits(i.first, 5, 4)) {
        case 0:
            comparing = Alu::Tst;
            break;
        case 1:
            alu = Alu::Bic;
            break;
        case 2:
            alu = rn == kPc ? Alu::Mov : Alu::Orr;
            break;
        case 3:
            alu = rn == kPc ? Alu::Mvn : Alu::Orn;
            break;
        case 4:
            alu = Alu::Eor, comparing = Alu::Teq;
            break;
        case 8:
            alu = Alu::Add, comparing = Alu::Cmn;
            break;
        case 10:
            alu = Alu::Adc;
            break;
        case 11:
            alu = Alu::Sbc;
            break;
        case 13:
            alu = Alu::Sub, comparing = Alu::Cmp;
            break;
        case 14:
            alu = Alu::Rsb;
            break;
        default:
            return emit_undefined(e);
    }
    if (rd == kPc) {
        if (!flags || comparing == Alu::And) return emit_undefined(e);
        return emit_data(e, i, comparing, true, 0, rn, operand);
    }
    emit_data(e, i, alu, flags, rd, rn, operand);
}

void decode_plain_immediate(const Instruction& i, Emitter& e) {
    const unsigned rn = bits(i.first, 0, 4);
    const unsigned rd = bits(i.second, 8, 4);
    const u32 imm12 = (bit(i.first, 10) ? 0x800U : 0U) | (bits(i.second, 12, 3) << 8) | (i.second & 0xFF);
    const u32 imm16 = (rn << 12) | imm12;
    const u32 low = (bits(i.second, 12, 3) << 2) | bits(i.second, 6, 2);
    const u32 last = bits(i.second, 0, 5);
    const auto field = [&](Op& op, u32 imm, u32 imm2) {
        op.rd = static_cast<u8>(rd);
        op.rn = static_cast<u8>(rn);
        op.imm = imm;
        op.imm2 = imm2;
    };
    switch (bits(i.first, 4, 5)) {
        case 0b00000:
            if (rn == kPc)
                return emit_data(e, i, Alu::Mov, false, rd, 0, Operand2::immediate(i.literal_base() + imm12));
            return emit_data(e, i, Alu::Add, false, rd, rn, Operand2::immediate(imm12));
        case 0b01010:
            if (rn == kPc)
                return emit_data(e, i, Alu::Mov, false, rd, 0, Operand2::immediate(i.literal_base() - imm12));
            return emit_data(e, i, Alu::Sub, false, rd, rn, Operand2::immediate(imm12));
        case 0b00100:
            return emit_data(e, i, Alu::Mov, false, rd, 0, Operand2::immediate(imm16));
        case 0b01100:
            return field(e.add<movt>(), imm16, 0);
        case 0b10010:
        case 0b11010:
            if (low == 0) {
                const bool is_unsigned = bit(i.first, 7);
                Op& op = is_unsigned ? e.add<saturate_halves<false>>() : e.add<saturate_halves<true>>();
                return field(op, 0, bits(i.second, 0, 4) + (is_unsigned ? 0 : 1));
            }
            [[fallthrough]];
        case 0b10000:
        case 0b11000: {
            const bool is_unsigned = bit(i.first, 7);
            Op& op = is_unsigned ? e.add<usat>() : e.add<ssat>();
            field(op, low, last + (is_unsigned ? 0 : 1));
            op.aux = bit(i.first, 5) ? kAsr : kLsl;
            return;
        }
        case 0b10100:
            if (low + last > 31) return emit_undefined(e);
            return field(e.add<sbfx>(), low, last + 1);
        case 0b11100:
            if (low + last > 31) return emit_undefined(e);
            return field(e.add<ubfx>(), low, last + 1);
        case 0b10110:
            if (last < low) return emit_undefined(e);
            return field(rn == kPc ? e.add<bfc>() : e.add<bfi>(), low, last - low + 1);
        default:
            return emit_undefined(e);
    }
}

void decode_shifted_register(const Instruction& i, Emitter& e) {
    const unsigned amount = (bits(i.second, 12, 3) << 2) | bits(i.second, 6, 2);
    const unsigned kind = bits(i.second, 4, 2);
    const unsigned rm = bits(i.second, 0, 4);
    if (bits(i.first, 5, 4) != 6) return decode_operation(i, e, Operand2::shifted(rm, kind, amount));
    if (bit(i.first, 4) || bit(i.second, 4)) return emit_undefined(e);
    const bool tb = bit(i.second, 5);
    Op& op = tb ? e.add<pack_halves<true>>() : e.add<pack_halves<false>>();
    op.rd = static_cast<u8>(bits(i.second, 8, 4));
    op.rn = static_cast<u8>(bits(i.first, 0, 4));
    op.rm = static_cast<u8>(rm);
    op.imm = tb && amount == 0 ? 31 : amount;  // ASR #32 fills with signs, as #31 does for the low half
}

}  // namespace

void decode_data32(const Instruction& i, Emitter& e) {
    if (bits(i.first, 11, 2) == 1) return decode_shifted_register(i, e);
    if (bit(i.first, 9)) return decode_plain_immediate(i, e);
    decode_operation(
        i, e, expand_immediate((bit(i.first, 10) ? 0x800U : 0U) | (bits(i.second, 12, 3) << 8) | (i.second & 0xFF)));
}

}  // namespace talpa::board::cpu
