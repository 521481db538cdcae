// Data processing: arithmetic, logic, shifts, bit fields, extension, reversal, counting. One small body a form.
#pragma once

#include <bit>

#include "board/cpu/op.h"

namespace talpa::board::cpu {

enum class Alu : u8 { And, Bic, Orr, Orn, Eor, Add, Adc, Sub, Sbc, Rsb, Mov, Mvn, Tst, Teq, Cmp, Cmn };
inline constexpr std::size_t kAluCount = 16;
enum class Operand : u8 { Immediate, Register, Shifted };

[[nodiscard]] constexpr bool is_compare(Alu a) {
    return a >= Alu::Tst;
}
[[nodiscard]] constexpr bool is_arithmetic(Alu a) {
    return (a >= Alu::Add && a <= Alu::Rsb) || a == Alu::Cmp || a == Alu::Cmn;
}
[[nodiscard]] constexpr bool reads_carry(Alu a) {
    return a == Alu::Adc || a == Alu::Sbc;
}

struct Shifted {
    u32 value;
    bool carry;
};

/// A shift by 0..255 as the architecture counts it; RRX ignores the amount.
[[nodiscard]] inline Shifted shift(u32 value, unsigned kind, u32 amount, bool carry) {
    if (kind == kRrx) return {(value >> 1) | (carry ? 1U << 31 : 0), (value & 1) != 0};
    if (amount == 0) return {value, carry};
    switch (kind) {
        case kLsl:
            if (amount < 32) return {value << amount, bit(value, 32 - amount)};
            return {0, amount == 32 && (value & 1) != 0};
        case kLsr:
            if (amount < 32) return {value >> amount, bit(value, amount - 1)};
            return {0, amount == 32 && bit(value, 31)};
        case kAsr:
            if (amount < 32) return {w(s(value) >> amount), bit(value, amount - 1)};
            return {w(s(value) >> 31), bit(value, 31)};
        default: {
            const u32 result = std::rotr(value, static_cast<int>(amount & 31));
            return {result, bit(result, 31)};
        }
    }
}

struct Sum {
    u32 value;
    bool carry;
    bool overflow;
};

[[nodiscard]] inline Sum add_with_carry(u32 a, u32 b, u32 carry) {
    const u64 wide = u64{a} + b + carry;
    const u32 result = w(wide);
    return {result, (wide >> 32) != 0, (((a ^ result) & (b ^ result)) >> 31) != 0};
}

template <Alu A>
[[nodiscard]] inline Sum arithmetic(u32 a, u32 b, bool carry) {
    switch (A) {
        case Alu::Adc:
            return add_with_carry(a, b, carry ? 1 : 0);
        case Alu::Sub:
        case Alu::Cmp:
            return add_with_carry(a, ~b, 1);
        case Alu::Sbc:
            return add_with_carry(a, ~b, carry ? 1 : 0);
        case Alu::Rsb:
            return add_with_carry(~a, b, 1);
        default:
            return add_with_carry(a, b, 0);
    }
}

template <Alu A>
[[nodiscard]] inline u32 logic(u32 a, u32 b) {
    switch (A) {
        case Alu::And:
        case Alu::Tst:
            return a & b;
        case Alu::Bic:
            return a & ~b;
        case Alu::Orr:
            return a | b;
        case Alu::Orn:
            return a | ~b;
        case Alu::Eor:
        case Alu::Teq:
            return a ^ b;
        case Alu::Mvn:
            return ~b;
        default:
            return b;
    }
}

template <Operand O>
[[nodiscard]] inline Shifted operand(const Core& c, const Op& op) {
    if constexpr (O == Operand::Immediate) return {op.imm, op.aux == kCarryKept ? c.c() : op.aux == kCarrySet};
    if constexpr (O == Operand::Register) return {c.r[op.rm], c.c()};
    return shift(c.r[op.rm], op.aux, op.imm, c.c());
}

/// N, Z and the shifter's carry; V stays.
inline void set_logical_flags(Core& c, const Shifted& result) {
    c.nz = nz_flags(result.value);
    c.carry = result.carry ? 1 : 0;
}

/// rd = rn OP operand, with flags when F.
template <Alu A, Operand O, bool F>
bool data(Core& c, const Op& op) {
    const Shifted b = operand<O>(c, op);
    u32 result;
    if constexpr (is_arithmetic(A)) {
        const Sum sum = arithmetic<A>(c.r[op.rn], b.value, c.c());
        if constexpr (F) {
            c.nz = nz_flags(sum.value);
            c.carry = sum.carry ? 1 : 0;
            c.overflow = sum.overflow ? 1 : 0;
        }
        result = sum.value;
    } else {
        result = logic<A>(c.r[op.rn], b.value);
        if constexpr (F) set_logical_flags(c, {result, b.carry});
    }
    if constexpr (!is_compare(A)) c.r[op.rd] = result;
    return true;
}

/// ADD/SUB of the stack pointer to itself: the new value is checked against the limit and stays word-aligned.
template <Alu A, Operand O>
bool stack_arithmetic(Core& c, const Op& op) {
    const u32 result = arithmetic<A>(c.r[kSp], operand<O>(c, op).value, false).value & ~3U;
    if (result < c.stack_limit) return raise(c, op, Fault::StackOverflow);
    c.r[kSp] = result;
    return true;
}

/// Follows any other write to SP.
inline bool align_stack_pointer(Core& c, const Op& /*op*/) {
    c.r[kSp] &= ~3U;
    return true;
}

/// rd = rn shifted by the low byte of rm.
template <ShiftKind K, bool F>
bool shift_register(Core& c, const Op& op) {
    const Shifted result = shift(c.r[op.rn], K, c.r[op.rm] & 0xFF, c.c());
    if constexpr (F) set_logical_flags(c, result);
    c.r[op.rd] = result.value;
    return true;
}

inline bool movt(Core& c, const Op& op) {
    c.r[op.rd] = (c.r[op.rd] & 0xFFFF) | (op.imm << 16);
    return true;
}

// Bit fields: imm = lowest bit, imm2 = width.
[[nodiscard]] inline u32 field_mask(u32 width) {
    return width >= 32 ? 0xFFFFFFFFU : (1U << width) - 1;
}
inline bool ubfx(Core& c, const Op& op) {
    c.r[op.rd] = (c.r[op.rn] >> op.imm) & field_mask(op.imm2);
    return true;
}
inline bool sbfx(Core& c, const Op& op) {
    c.r[op.rd] = w(sign_extend(c.r[op.rn] >> op.imm, op.imm2));
    return true;
}
inline bool bfi(Core& c, const Op& op) {
    const u32 mask = field_mask(op.imm2) << op.imm;
    c.r[op.rd] = (c.r[op.rd] & ~mask) | ((c.r[op.rn] << op.imm) & mask);
    return true;
}
inline bool bfc(Core& c, const Op& op) {
    c.r[op.rd] &= ~(field_mask(op.imm2) << op.imm);
    return true;
}

// SXTB and relatives: rm rotated by aux, then the part; with A added to rn.
enum class Extend : u8 { Sxtb, Sxth, Uxtb, Uxth, Sxtb16, Uxtb16 };
template <Extend E, bool A>
bool extend(Core& c, const Op& op) {
    const u32 value = std::rotr(c.r[op.rm], op.aux);
    const u32 n = A ? c.r[op.rn] : 0;
    u32 result = 0;
    switch (E) {
        case Extend::Sxtb:
            result = n + w(sign_extend(value, 8));
            break;
        case Extend::Sxth:
            result = n + w(sign_extend(value, 16));
            break;
        case Extend::Uxtb:
            result = n + (value & 0xFF);
            break;
        case Extend::Uxth:
            result = n + (value & 0xFFFF);
            break;
        case Extend::Sxtb16:
            result = ((n + w(sign_extend(value, 8))) & 0xFFFF) | (((n >> 16) + w(sign_extend(value >> 16, 8))) << 16);
            break;
        case Extend::Uxtb16:
            result = ((n + (value & 0xFF)) & 0xFFFF) | (((n >> 16) + ((value >> 16) & 0xFF)) << 16);
            break;
    }
    c.r[op.rd] = result;
    return true;
}

inline bool rev(Core& c, const Op& op) {
    c.r[op.rd] = __builtin_bswap32(c.r[op.rm]);
    return true;
}
inline bool rev16(Core& c, const Op& op) {
    const u32 v = c.r[op.rm];
    c.r[op.rd] = ((v & 0x00FF00FF) << 8) | ((v >> 8) & 0x00FF00FF);
    return true;
}
inline bool revsh(Core& c, const Op& op) {
    const u32 v = c.r[op.rm];
    c.r[op.rd] = w(sign_extend(((v & 0xFF) << 8) | ((v >> 8) & 0xFF), 16));
    return true;
}
inline bool rbit(Core& c, const Op& op) {
    u32 v = __builtin_bswap32(c.r[op.rm]);
    v = ((v & 0x0F0F0F0F) << 4) | ((v >> 4) & 0x0F0F0F0F);
    v = ((v & 0x33333333) << 2) | ((v >> 2) & 0x33333333);
    c.r[op.rd] = ((v & 0x55555555) << 1) | ((v >> 1) & 0x55555555);
    return true;
}
inline bool clz(Core& c, const Op& op) {
    c.r[op.rd] = w(std::countl_zero(c.r[op.rm]));
    return true;
}

/// Nothing: hints, preloads, DBG.
inline bool nop(Core& /*core*/, const Op& /*op*/) {
    return true;
}

// Reads of the program counter as an ordinary register (ADD and MOV from PC): the value goes to r[15] first.
inline bool expose_pc(Core& c, const Op& op) {
    c.r[kPc] = op.imm;
    return true;
}

}  // namespace talpa::board::cpu
