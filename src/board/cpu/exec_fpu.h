// The floating-point extension (FPv5, single precision): moves, arithmetic, conversions, loads and stores.
// Register fields are numbers of S registers; D registers are given by their lower S register.
#pragma once

#include "board/cpu/exec_memory.h"
#include "board/cpu/float32.h"

namespace talpa::board::cpu {

/// First micro-operation of an FP instruction: access rights, context creation, lazy state (exceptions.cpp).
bool prepare_fp(Core& core, const Op& op);
inline bool fp_check(Core& c, const Op& op) {
    if (c.fp_ready) [[likely]]
        return true;
    return prepare_fp(c, op);
}

enum class Fp2 : u8 { Add, Sub, Mul, Nmul, Div, Mla, Mls, Nmla, Nmls, Fma, Fms, Fnma, Fnms, Maxnm, Minnm };

/// rd = rn OP rm, the accumulating ones with rd as addend.
template <Fp2 F>
bool fp_binary(Core& c, const Op& op) {
    using namespace float32;
    const u32 n = c.f[op.rn];
    const u32 m = c.f[op.rm];
    const u32 d = c.f[op.rd];
    u32 result = 0;
    switch (F) {
        case Fp2::Add:
            result = add(n, m, c.fpscr);
            break;
        case Fp2::Sub:
            result = sub(n, m, c.fpscr);
            break;
        case Fp2::Mul:
            result = mul(n, m, c.fpscr);
            break;
        case Fp2::Nmul:
            result = negate(mul(n, m, c.fpscr));
            break;
        case Fp2::Div:
            result = div(n, m, c.fpscr);
            break;
        case Fp2::Mla:
            result = add(d, mul(n, m, c.fpscr), c.fpscr);
            break;
        case Fp2::Mls:
            result = add(d, negate(mul(n, m, c.fpscr)), c.fpscr);
            break;
        case Fp2::Nmla:
            result = add(negate(d), negate(mul(n, m, c.fpscr)), c.fpscr);
            break;
        case Fp2::Nmls:
            result = add(negate(d), mul(n, m, c.fpscr), c.fpscr);
            break;
        case Fp2::Fma:
            result = fused_multiply_add(d, n, m, c.fpscr);
            break;
        case Fp2::Fms:
            result = fused_multiply_add(d, negate(n), m, c.fpscr);
            break;
        case Fp2::Fnma:
            result = fused_multiply_add(negate(d), negate(n), m, c.fpscr);
            break;
        case Fp2::Fnms:
            result = fused_multiply_add(negate(d), n, m, c.fpscr);
            break;
        case Fp2::Maxnm:
            result = max_number(n, m, c.fpscr);
            break;
        case Fp2::Minnm:
            result = min_number(n, m, c.fpscr);
            break;
    }
    c.f[op.rd] = result;
    return true;
}

enum class Fp1 : u8 { Move, Abs, Neg, Sqrt };
template <Fp1 F>
bool fp_unary(Core& c, const Op& op) {
    const u32 m = c.f[op.rm];
    switch (F) {
        case Fp1::Move:
            c.f[op.rd] = m;
            break;
        case Fp1::Abs:
            c.f[op.rd] = m & ~float32::kSignBit;
            break;
        case Fp1::Neg:
            c.f[op.rd] = float32::negate(m);
            break;
        case Fp1::Sqrt:
            c.f[op.rd] = float32::sqrt(m, c.fpscr);
            break;
    }
    return true;
}

inline bool fp_immediate(Core& c, const Op& op) {
    c.f[op.rd] = op.imm;
    return true;
}

/// VCMP, VCMPE (aux 1): rd with rm, or with zero.
template <bool Zero>
bool fp_compare(Core& c, const Op& op) {
    const u32 nzcv = float32::compare(c.f[op.rd], Zero ? 0 : c.f[op.rm], op.aux != 0, c.fpscr);
    c.fpscr = (c.fpscr & 0x0FFFFFFF) | nzcv;
    return true;
}

/// VSEL: aux the condition.
inline bool fp_select(Core& c, const Op& op) {
    c.f[op.rd] = condition_holds(c, op.aux) ? c.f[op.rn] : c.f[op.rm];
    return true;
}

/// The mode in `aux`; kModeOfFpscr takes the current one.
inline constexpr u8 kModeOfFpscr = 0xFF;
[[nodiscard]] inline float32::Round rounding(const Core& c, u8 aux) {
    return aux == kModeOfFpscr ? float32::mode_of(c.fpscr) : static_cast<float32::Round>(aux);
}

/// VRINT: imm 1 for the exact form.
inline bool fp_round(Core& c, const Op& op) {
    c.f[op.rd] = float32::round_to_integral(c.f[op.rm], rounding(c, op.aux), op.imm != 0, c.fpscr);
    return true;
}

/// Float to integer or fixed point: imm = fraction bits, imm2 = width.
template <bool Unsigned>
bool fp_to_fixed(Core& c, const Op& op) {
    c.f[op.rd] = float32::to_fixed(c.f[op.rm], op.imm, op.imm2, Unsigned, rounding(c, op.aux), c.fpscr);
    return true;
}
template <bool Unsigned>
bool fp_from_fixed(Core& c, const Op& op) {
    const u32 m = c.f[op.rm];
    i64 value = Unsigned ? i64{m} : i64{static_cast<i32>(m)};
    if (op.imm2 == 16) value = Unsigned ? i64{m & 0xFFFF} : i64{sign_extend(m, 16)};
    c.f[op.rd] = float32::from_fixed(value, op.imm, rounding(c, op.aux), c.fpscr);
    return true;
}

/// VCVTB, VCVTT: aux 16 for the top half.
inline bool fp_from_half(Core& c, const Op& op) {
    c.f[op.rd] = float32::from_half((c.f[op.rm] >> op.aux) & 0xFFFF, c.fpscr);
    return true;
}
inline bool fp_to_half(Core& c, const Op& op) {
    const u32 half = float32::to_half(c.f[op.rm], c.fpscr);
    c.f[op.rd] = (c.f[op.rd] & ~(0xFFFFU << op.aux)) | (half << op.aux);
    return true;
}

// Between register files: rd/rn core registers, rm the (lower) S register.
inline bool fp_to_core(Core& c, const Op& op) {
    c.r[op.rd] = c.f[op.rm];
    return true;
}
inline bool fp_from_core(Core& c, const Op& op) {
    c.f[op.rm] = c.r[op.rd];
    return true;
}
inline bool fp_to_core_pair(Core& c, const Op& op) {
    c.r[op.rd] = c.f[op.rm];
    c.r[op.ra] = c.f[op.rm + 1U];
    return true;
}
inline bool fp_from_core_pair(Core& c, const Op& op) {
    c.f[op.rm] = c.r[op.rd];
    c.f[op.rm + 1U] = c.r[op.ra];
    return true;
}
inline bool vmrs(Core& c, const Op& op) {
    c.r[op.rd] = c.fpscr;
    return true;
}
inline bool vmrs_flags(Core& c, const Op& /*op*/) {
    c.set_nzcv(c.fpscr);
    return true;
}
inline bool vmsr(Core& c, const Op& op) {
    c.fpscr = c.r[op.rd] & float32::kWritable;
    return true;
}

/// VLDR, VSTR: rd the S register, imm the offset or (rn = 15) the address; Words 1 or 2.
template <bool Load, unsigned Words>
bool fp_transfer(Core& c, const Op& op) {
    const u32 address = op.rn == kPc ? op.imm : c.r[op.rn] + op.imm;
    if ((address & 3) != 0) return raise(c, op, Fault::Unaligned, address);
    u32 values[Words];
    for (u32 i = 0; i < Words; i++) {
        if constexpr (Load) {
            if (!load<u32>(c, op, address + 4 * i, values[i])) return false;
        } else {
            if (!store<u32>(c, op, address + 4 * i, c.f[op.rd + i])) return false;
        }
    }
    if constexpr (Load)
        for (u32 i = 0; i < Words; i++) c.f[op.rd + i] = values[i];
    return true;
}

/// VLDM, VSTM, VPUSH, VPOP: rd the first S register, ra their count, imm the words that the base moves by (FLDMX has
/// one more than it transfers).
template <bool Load>
bool fp_multiple(Core& c, const Op& op) {
    const bool down = (op.aux & kMultipleDown) != 0;
    const bool wb = (op.aux & kMultipleWriteBack) != 0;
    const u32 base = op.rn == kPc ? op.imm2 : c.r[op.rn];
    const u32 start = down ? base - op.imm : base;
    const u32 after = down ? start : base + op.imm;
    if (wb && limit_broken(c, op.rn, after)) return raise(c, op, Fault::StackOverflow);
    if ((start & 3) != 0) return raise(c, op, Fault::Unaligned, start);
    u32 values[32];
    for (u32 i = 0; i < op.ra; i++) {
        if constexpr (Load) {
            if (!load<u32>(c, op, start + 4 * i, values[i])) return false;
        } else {
            if (!store<u32>(c, op, start + 4 * i, c.f[(op.rd + i) & 31U])) return false;
        }
    }
    if constexpr (Load)
        for (u32 i = 0; i < op.ra; i++) c.f[(op.rd + i) & 31U] = values[i];
    if (wb) write_back(c, op.rn, after);
    return true;
}

/// VLLDM, VLSTM in the secure state with nothing to save: no operation (they serve calls to non-secure code).
inline bool fp_lazy_security(Core& /*core*/, const Op& /*op*/) {
    return true;
}

}  // namespace talpa::board::cpu
