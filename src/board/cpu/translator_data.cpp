// Translation of data processing. eax, ecx and edx are free in every template; the destination is written last.
#include <cstddef>

#include "board/cpu/translator.h"

namespace talpa::board::cpu {

using namespace x86;

namespace {

const Place kNzPlace = Place::field(offsetof(Core, nz));
const Place kCarryPlace = Place::field(offsetof(Core, carry));
const Place kOverflowPlace = Place::field(offsetof(Core, overflow));

enum : unsigned { kRorShift = 1, kRcrShift = 3, kShlShift = 4, kShrShift = 5, kSarShift = 7 };
constexpr unsigned kHostShift[] = {kShlShift, kShrShift, kSarShift, kRorShift, kRcrShift};
constexpr Reg kAh = rsp;  // the encoding of AH without REX

}  // namespace

/// N and Z from the host's flags; keeps them.
void Translator::store_nz() {
    a_.byte(0x9F);  // lahf
    a_.place(0x88, kAh, kNzPlace);
}

void Translator::data(const Op& op, const Shape& shape) {
    const auto alu = static_cast<Alu>(shape.a);
    const auto kind = static_cast<Operand>(shape.b);
    const bool flags = shape.c != 0;
    const bool arithmetic = is_arithmetic(alu);
    const bool compare = is_compare(alu);
    host_flags_ = HostFlags::None;
    if (compare && !flags) return;

    // The second operand: an immediate, a place, or ecx after its shift.
    Place source = reg(op.rm);
    bool immediate = kind == Operand::Immediate;
    u32 value = op.imm;
    if (kind == Operand::Shifted) {
        const bool wants_carry = flags && !arithmetic;
        if (op.imm >= 32 && wants_carry) return call_body(op);
        a_.load(rcx, source);
        if (op.aux == kRrx) {
            a_.place(0x8A, rax, kCarryPlace);  // mov al, carry
            a_.byte(0x04);                     // add al, -1: CF = carry
            a_.byte(0xFF);
        }
        if (op.imm < 32) {
            a_.shift(kHostShift[op.aux], rcx, op.imm);
        } else {
            op.aux == kAsr ? a_.shift(kSarShift, rcx, 31) : a_.load_immediate(Place::of(rcx), 0);
        }
        if (wants_carry) a_.set_byte(kB, kCarryPlace);
        source = Place::of(rcx);
    } else if (flags && immediate && !arithmetic && op.aux != kCarryKept) {
        a_.store_byte(kCarryPlace, op.aux == kCarrySet ? 1 : 0);
    }
    const Place n = reg(op.rn);
    const Place d = reg(op.rd);

    if (!flags) {  // forms without a detour through eax
        if (alu == Alu::Mov) {
            if (immediate) return a_.load_immediate(d, value);
            if (!d.memory) return a_.load(d.reg, source);
            a_.load(rax, source);
            return a_.store(d, rax);
        }
        if ((alu == Alu::Add || alu == Alu::Sub) && immediate && !d.memory && !n.memory && d != n)
            return a_.lea(d.reg, n.reg, static_cast<i32>(alu == Alu::Sub ? 0 - value : value));
        if (alu == Alu::Add && !immediate && !d.memory && !n.memory && !source.memory && d != n) {
            a_.indexed(0x8D, d.reg, n.reg, source.reg, 0, 0);
            return;
        }
    }

    static constexpr Op8 kOps[] = {Op8::And, Op8::And, Op8::Or, Op8::Or, Op8::Xor, Op8::Add, Op8::Adc, Op8::Sub,
                                   Op8::Sbb, Op8::Sub, Op8::Or, Op8::Or, Op8::And, Op8::Xor, Op8::Cmp, Op8::Add};
    const Op8 o = kOps[static_cast<unsigned>(alu)];
    const bool inverts = alu == Alu::Bic || alu == Alu::Orn || alu == Alu::Mvn;
    if (inverts) {
        if (immediate) {
            value = ~value;
        } else {
            a_.load(rcx, source);
            a_.place(0xF7, 2, Place::of(rcx));  // not
            source = Place::of(rcx);
        }
    }
    bool in_place = false;
    if (alu == Alu::Mov || alu == Alu::Mvn) {
        immediate ? a_.load_immediate(Place::of(rax), value) : a_.load(rax, source);
        if (flags) a_.test(Place::of(rax), rax);
    } else if (alu == Alu::Rsb) {
        immediate ? a_.load_immediate(Place::of(rax), value) : a_.load(rax, source);
        a_.op(Op8::Sub, rax, n);
    } else if (alu == Alu::Cmp && (immediate || !source.memory || !n.memory)) {
        if (immediate)
            a_.op_immediate(Op8::Cmp, n, value);
        else if (!source.memory)
            a_.op_to(Op8::Cmp, n, source.reg);
        else
            a_.op(Op8::Cmp, n.reg, source);
    } else if (alu == Alu::Tst && (immediate || !source.memory)) {
        immediate ? a_.test_immediate(n, value) : a_.test(n, source.reg);
    } else {
        in_place = !compare && !d.memory && d == n && (immediate || !reads_carry(alu) || source != Place::of(rax));
        const Reg work = in_place ? d.reg : rax;
        if (!in_place) a_.load(rax, n);
        if (alu == Alu::Adc) {
            a_.place(0x8A, rdx, kCarryPlace);  // mov dl, carry
            a_.byte(0x80);                     // add dl, -1: CF = carry
            a_.byte(0xC2);
            a_.byte(0xFF);
        }
        if (alu == Alu::Sbc) {
            a_.place(0x80, 7, kCarryPlace);  // cmp carry, 1: CF = not carry
            a_.byte(1);
        }
        immediate ? a_.op_immediate(o, Place::of(work), value) : a_.op(o, work, source);
    }
    if (!compare && !in_place) a_.store(d, rax);
    if (!flags) return;
    store_nz();
    if (!arithmetic) {
        host_flags_ = HostFlags::Logic;
        return;
    }
    const bool borrow = alu == Alu::Sub || alu == Alu::Sbc || alu == Alu::Rsb || alu == Alu::Cmp;
    a_.set_byte(borrow ? kAe : kB, kCarryPlace);
    a_.set_byte(kO, kOverflowPlace);
    host_flags_ = borrow ? HostFlags::Borrow : HostFlags::Direct;
}

/// Amounts of 0 to 255: in 64 bits, with the amount clamped to 63, the result and the last bit shifted out lie beside
/// each other.
void Translator::shift_by_register(const Op& op, const Shape& shape) {
    const bool flags = shape.c != 0;
    a_.load(rcx, reg(op.rm));
    a_.place(0x1B6, rcx, Place::of(rcx));  // movzx ecx, cl
    u32 unchanged = 0;
    const auto carry_bit = [&](u32 bit_number) {
        if (!flags) return;
        a_.test(Place::of(rcx), rcx);
        unchanged = a_.jump_if(kE);
        a_.place(0x1BA, 4, Place::of(rax), true);  // bt rax, bit
        a_.byte(bit_number);
        a_.set_byte(kB, kCarryPlace);
        a_.bind(unchanged);
    };
    if (shape.a == kRor) {
        a_.load(rax, reg(op.rn));
        a_.shift_by_cl(kRorShift, rax);
        carry_bit(31);
    } else {
        a_.load_immediate(Place::of(rdx), 63);
        a_.op(Op8::Cmp, rcx, Place::of(rdx));
        a_.place(0x147, rcx, Place::of(rdx));  // cmova ecx, edx
        a_.load(rax, reg(op.rn));
        if (in_host(op.rn) || reg(op.rn).memory) a_.place(0x89, rax, Place::of(rax));  // upper half zero
        if (shape.a == kLsl) {
            a_.shift_by_cl(kShlShift, rax, true);
            carry_bit(32);
        } else {
            a_.shift(kShlShift, rax, 32, true);
            a_.shift_by_cl(shape.a == kLsr ? kShrShift : kSarShift, rax, true);
            carry_bit(31);
            a_.shift(kShrShift, rax, 32, true);
        }
    }
    a_.store(reg(op.rd), rax);
    if (!flags) return;
    a_.test(Place::of(rax), rax);
    store_nz();
}

void Translator::bit_field(const Op& op, unsigned kind) {
    const u32 mask = field_mask(op.imm2);
    switch (kind) {
        case 0:
            a_.load(rax, reg(op.rn));
            if (op.imm != 0) a_.shift(kShrShift, rax, op.imm);
            if (op.imm + op.imm2 < 32) a_.op_immediate(Op8::And, Place::of(rax), mask);
            break;
        case 1:
            a_.load(rax, reg(op.rn));
            if (op.imm + op.imm2 < 32) a_.shift(kShlShift, rax, 32 - op.imm - op.imm2);
            if (op.imm2 < 32) a_.shift(kSarShift, rax, 32 - op.imm2);
            break;
        case 2:
            a_.load(rcx, reg(op.rn));
            if (op.imm != 0) a_.shift(kShlShift, rcx, op.imm);
            a_.op_immediate(Op8::And, Place::of(rcx), mask << op.imm);
            a_.load(rax, reg(op.rd));
            a_.op_immediate(Op8::And, Place::of(rax), ~(mask << op.imm));
            a_.op(Op8::Or, rax, Place::of(rcx));
            break;
        default:
            a_.load(rax, reg(op.rd));
            a_.op_immediate(Op8::And, Place::of(rax), ~(mask << op.imm));
            break;
    }
    a_.store(reg(op.rd), rax);
}

void Translator::extend_register(const Op& op, const Shape& shape) {
    a_.load(rax, reg(op.rm));
    if (op.aux != 0) a_.shift(kRorShift, rax, op.aux);
    switch (static_cast<Extend>(shape.a)) {
        case Extend::Sxtb:
            a_.place(0x1BE, rax, Place::of(rax));
            break;
        case Extend::Sxth:
            a_.place(0x1BF, rax, Place::of(rax));
            break;
        case Extend::Uxtb:
            a_.place(0x1B6, rax, Place::of(rax));
            break;
        default:
            a_.place(0x1B7, rax, Place::of(rax));
            break;
    }
    if (shape.b != 0) a_.op(Op8::Add, rax, reg(op.rn));
    a_.store(reg(op.rd), rax);
}

void Translator::multiply_long(const Op& op, const Shape& shape) {
    const auto widened = [&](Reg to, unsigned from) {
        if (shape.a != 0)
            a_.place(0x63, to, reg(from), true);  // movsxd
        else
            a_.place(0x8B, to, reg(from));
    };
    widened(rax, op.rn);
    widened(rcx, op.rm);
    a_.place(0x1AF, rax, Place::of(rcx), true);
    if (shape.b != 0) {
        a_.place(0x8B, rcx, reg(op.ra));
        a_.shift(kShlShift, rcx, 32, true);
        a_.place(0x8B, rdx, reg(op.rd));
        a_.place(0x0B, rcx, Place::of(rdx), true);
        a_.place(0x03, rax, Place::of(rcx), true);
    }
    a_.store(reg(op.rd), rax);
    a_.shift(kShrShift, rax, 32, true);
    a_.store(reg(op.ra), rax);
}

void Translator::divide(const Op& op, bool is_signed) {
    a_.load(rcx, reg(op.rm));
    a_.test(Place::of(rcx), rcx);
    slow(a_.jump_if(kE), op);
    const std::size_t first = slow_paths_.size() - 1;
    if (is_signed) {
        a_.op_immediate(Op8::Cmp, Place::of(rcx), ~0U);
        slow(a_.jump_if(kE), op);
    }
    a_.load(rax, reg(op.rn));
    if (is_signed)
        a_.byte(0x99);  // cdq
    else
        a_.op(Op8::Xor, rdx, Place::of(rdx));
    a_.place(0xF7, is_signed ? 7 : 6, Place::of(rcx));
    a_.store(reg(op.rd), rax);
    for (std::size_t i = first; i < slow_paths_.size(); i++) slow_paths_[i].resume = a_.position();
}

}  // namespace talpa::board::cpu
