// Loads and stores: single, dual, multiple, exclusive, acquire-release; table branches; TT (manual C2.3.1, C2.3.5,
// C2.3.6).
#include "board/cpu/decoder.h"
#include "board/cpu/exec_memory.h"
#include "board/cpu/exec_system.h"

namespace talpa::board::cpu {

namespace {

void decode_multiple(const Instruction& i, Emitter& e) {
    const unsigned rn = bits(i.first, 0, 4);
    const bool load = bit(i.first, 4);
    const u32 list = i.second & 0xFFFF;
    const unsigned kind = bits(i.first, 7, 2);
    if (kind == 0 || kind == 3 || rn == kPc || bit(list, kSp) || list == 0 || (!load && bit(list, kPc)))
        return emit_undefined(e);
    emit_multiple(e, load ? Transfer::Load : Transfer::Store, rn, list, kind == 2, bit(i.first, 5));
}

void decode_dual(const Instruction& i, Emitter& e) {
    const bool load = bit(i.first, 4);
    const bool index = bit(i.first, 8);
    const bool wb = bit(i.first, 5);
    const unsigned rn = bits(i.first, 0, 4);
    u32 offset = (i.second & 0xFF) * 4;
    if (!bit(i.first, 7)) offset = 0U - offset;
    Op* op = nullptr;
    if (rn == kPc) {
        if (!load || wb) return emit_undefined(e);
        op = &e.add<dual<true, Address::Absolute>>();
        offset += i.literal_base();
    } else if (!wb) {
        op = load ? &e.add<dual<true, Address::Offset>>() : &e.add<dual<false, Address::Offset>>();
    } else if (index) {
        op = load ? &e.add<dual<true, Address::Before>>() : &e.add<dual<false, Address::Before>>();
    } else {
        op = load ? &e.add<dual<true, Address::After>>() : &e.add<dual<false, Address::After>>();
    }
    op->rd = static_cast<u8>(bits(i.second, 12, 4));
    op->ra = static_cast<u8>(bits(i.second, 8, 4));
    op->rn = static_cast<u8>(rn);
    op->imm = offset;
}

void decode_test_target(const Instruction& i, Emitter& e) {
    Op& op = e.add<test_target>();
    op.rd = static_cast<u8>(bits(i.second, 8, 4));
    op.rn = static_cast<u8>(bits(i.first, 0, 4));
    op.aux = static_cast<u8>(bits(i.second, 6, 2));
}

/// LDREX and STREX of words have an offset; the others are told apart by bits 7:4 of the second halfword.
void decode_exclusive_word(const Instruction& i, Emitter& e) {
    const bool is_load = bit(i.first, 4);
    const unsigned rt = bits(i.second, 12, 4);
    if (!is_load && rt == kPc && (i.second & 0x3F) == 0) return decode_test_target(i, e);
    Op& op = is_load ? e.add<load_acquire<4, true>>() : e.add<store_exclusive<4>>();
    op.rd = static_cast<u8>(rt);
    op.ra = static_cast<u8>(bits(i.second, 8, 4));
    op.rn = static_cast<u8>(bits(i.first, 0, 4));
    op.imm = (i.second & 0xFF) * 4;
}

void decode_ordered(const Instruction& i, Emitter& e) {
    const bool load = bit(i.first, 4);
    const unsigned op3 = bits(i.second, 4, 4);
    Op* op = nullptr;
    switch (op3) {
        case 0:
        case 1: {
            if (!load) return emit_undefined(e);
            Op& table = op3 == 0 ? e.add<table_branch<false>>() : e.add<table_branch<true>>();
            table.rn = static_cast<u8>(bits(i.first, 0, 4));
            table.rm = static_cast<u8>(bits(i.second, 0, 4));
            table.imm = i.next();
            e.ended = true;
            return;
        }
        case 4:
            op = load ? &e.add<load_acquire<1, true>>() : &e.add<store_exclusive<1>>();
            break;
        case 5:
            op = load ? &e.add<load_acquire<2, true>>() : &e.add<store_exclusive<2>>();
            break;
        case 8:
            op = load ? &e.add<load_acquire<1, false>>() : &e.add<store_release<1>>();
            break;
        case 9:
            op = load ? &e.add<load_acquire<2, false>>() : &e.add<store_release<2>>();
            break;
        case 10:
            op = load ? &e.add<load_acquire<4, false>>() : &e.add<store_release<4>>();
            break;
        case 12:
            op = load ? &e.add<load_acquire<1, true>>() : &e.add<store_exclusive<1>>();
            break;
        case 13:
            op = load ? &e.add<load_acquire<2, true>>() : &e.add<store_exclusive<2>>();
            break;
        case 14:
            op = load ? &e.add<load_acquire<4, true>>() : &e.add<store_exclusive<4>>();
            break;
        default:
            return emit_undefined(e);
    }
    op->rd = static_cast<u8>(bits(i.second, 12, 4));
    op->ra = static_cast<u8>(bits(i.second, 0, 4));
    op->rn = static_cast<u8>(bits(i.first, 0, 4));
}

void decode_dual_exclusive(const Instruction& i, Emitter& e) {
    if (i.first == 0xE97F && i.second == 0xE97F) {  // SG: nothing in the secure state
        e.add<nop>();
        return;
    }
    const unsigned op1 = bits(i.first, 7, 2);
    if (bit(i.first, 5) || bit(i.first, 8)) return decode_dual(i, e);
    return op1 == 0 ? decode_exclusive_word(i, e) : decode_ordered(i, e);
}

template <Width W>
void add_unprivileged(Emitter& e, bool load) {
    if (load)
        e.add<load_unprivileged<W>>();
    else
        e.add<store_unprivileged<W>>();
}

void decode_single(const Instruction& i, Emitter& e) {
    const bool load = bit(i.first, 4);
    const bool is_signed = bit(i.first, 8);
    const unsigned size = bits(i.first, 5, 2);
    const unsigned rn = bits(i.first, 0, 4);
    const unsigned rt = bits(i.second, 12, 4);
    if (size == 3 || (is_signed && (size == 2 || !load)) || (!load && (rn == kPc || rt == kPc)))
        return emit_undefined(e);
    static constexpr Width kWidths[2][3] = {{Width::Byte, Width::Half, Width::Word},
                                            {Width::SignedByte, Width::SignedHalf, Width::Word}};
    const Width width = kWidths[is_signed ? 1 : 0][size];
    const Transfer t = load ? Transfer::Load : Transfer::Store;
    const bool hint = load && rt == kPc && size != 2;  // PLD, PLI and their reserved neighbours
    const auto emit = [&](Address mode, unsigned rm, u32 imm, unsigned shift) {
        if (hint) {
            e.add<nop>();
            return;
        }
        emit_transfer(e, t, static_cast<unsigned>(width), static_cast<unsigned>(mode), rt, rn, rm, imm, shift);
    };
    const u32 imm12 = i.second & 0xFFF;
    if (rn == kPc)
        return emit(Address::Absolute, 0, bit(i.first, 7) ? i.literal_base() + imm12 : i.literal_base() - imm12, 0);
    if (bit(i.first, 7)) return emit(Address::Offset, 0, imm12, 0);
    if (!bit(i.second, 11)) {
        if (bits(i.second, 6, 5) != 0) return emit_undefined(e);
        return emit(Address::Register, bits(i.second, 0, 4), 0, bits(i.second, 4, 2));
    }
    const u32 imm8 = i.second & 0xFF;
    const u32 offset = bit(i.second, 9) ? imm8 : 0U - imm8;
    switch (bits(i.second, 8, 3)) {
        case 0b110:
            switch (width) {
                case Width::Byte:
                    add_unprivileged<Width::Byte>(e, load);
                    break;
                case Width::SignedByte:
                    add_unprivileged<Width::SignedByte>(e, load);
                    break;
                case Width::Half:
                    add_unprivileged<Width::Half>(e, load);
                    break;
                case Width::SignedHalf:
                    add_unprivileged<Width::SignedHalf>(e, load);
                    break;
                case Width::Word:
                    add_unprivileged<Width::Word>(e, load);
                    break;
            }
            e.ops.back().rd = static_cast<u8>(rt);
            e.ops.back().rn = static_cast<u8>(rn);
            e.ops.back().imm = imm8;
            return;
        case 0b100:
            return emit(Address::Offset, 0, offset, 0);
        case 0b101:
        case 0b111:
            return hint ? emit_undefined(e) : emit(Address::Before, 0, offset, 0);
        case 0b001:
        case 0b011:
            return hint ? emit_undefined(e) : emit(Address::After, 0, offset, 0);
        default:
            return emit_undefined(e);
    }
}

}  // namespace

void decode_memory32(const Instruction& i, Emitter& e) {
    if (bits(i.first, 11, 2) == 3) return decode_single(i, e);
    return bit(i.first, 6) ? decode_dual_exclusive(i, e) : decode_multiple(i, e);
}

}  // namespace talpa::board::cpu
