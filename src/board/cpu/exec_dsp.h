// Saturation and the parallel arithmetic of the DSP extension.
#pragma once

#include "board/cpu/op.h"

namespace talpa::board::cpu {

// --- saturating words
// -------------------------------------------------------------------------------------------------

[[nodiscard]] inline u32 saturate_word(Core& c, i64 value) {
    constexpr i64 kMax = 0x7FFFFFFF;
    if (value > kMax || value < -kMax - 1) {
        c.q = 1;
        return value > 0 ? 0x7FFFFFFFU : 0x80000000U;
    }
    return static_cast<u32>(value);
}

/// QADD, QSUB, QDADD, QDSUB: rm op rn, with rn doubled (and saturated) first when D.
template <bool Subtract, bool D>
bool saturating_add(Core& c, const Op& op) {
    i64 n = static_cast<i32>(c.r[op.rn]);
    if (D) n = static_cast<i32>(saturate_word(c, 2 * n));
    const i64 m = static_cast<i32>(c.r[op.rm]);
    c.r[op.rd] = saturate_word(c, Subtract ? m - n : m + n);
    return true;
}

[[nodiscard]] inline i64 clamp_q(Core& c, i64 value, i64 low, i64 high) {
    if (value < low || value > high) c.q = 1;
    return value < low ? low : value > high ? high : value;
}

/// SSAT: imm2 bits; rn shifted by aux/imm (LSL or ASR).
[[nodiscard]] inline i64 saturate_operand(const Core& c, const Op& op) {
    const u32 n = c.r[op.rn];
    return op.aux == 2 ? s(n) >> op.imm : static_cast<i32>(n << op.imm);
}
inline bool ssat(Core& c, const Op& op) {
    const i64 top = (i64{1} << (op.imm2 - 1)) - 1;
    c.r[op.rd] = static_cast<u32>(clamp_q(c, saturate_operand(c, op), -top - 1, top));
    return true;
}
inline bool usat(Core& c, const Op& op) {
    c.r[op.rd] = static_cast<u32>(clamp_q(c, saturate_operand(c, op), 0, (i64{1} << op.imm2) - 1));
    return true;
}
template <bool Signed>
bool saturate_halves(Core& c, const Op& op) {
    const i64 low = Signed ? -(i64{1} << (op.imm2 - 1)) : 0;
    const i64 high = Signed ? (i64{1} << (op.imm2 - 1)) - 1 : (i64{1} << op.imm2) - 1;
    u32 result = 0;
    for (unsigned i = 0; i < 32; i += 16)
        result |= (static_cast<u32>(clamp_q(c, static_cast<i16>(c.r[op.rn] >> i), low, high)) & 0xFFFF) << i;
    c.r[op.rd] = result;
    return true;
}

// --- parallel addition and subtraction
// --------------------------------------------------------------------------------

enum class Lanes : u8 { Add8, Add16, Asx, Sub8, Sub16, Sax };  // Asx: high sum, low difference, halves of rm exchanged
enum class Rule : u8 { Signed, SignedSaturate, SignedHalve, Unsigned, UnsignedSaturate, UnsignedHalve };

[[nodiscard]] constexpr bool is_signed(Rule r) {
    return r <= Rule::SignedHalve;
}

/// One lane's result, and what GE gets for it under the two wrapping rules.
template <Rule R, unsigned Width>
[[nodiscard]] inline u32 lane(i32 a, i32 b, bool subtract, bool& ge) {
    const i32 value = subtract ? a - b : a + b;
    constexpr i32 kSpan = 1 << Width;
    if (R == Rule::Signed || (R == Rule::Unsigned && subtract))
        ge = value >= 0;
    else if (R == Rule::Unsigned)
        ge = value >= kSpan;
    i32 result = value;
    if (R == Rule::SignedSaturate)
        result = value > kSpan / 2 - 1 ? kSpan / 2 - 1 : value < -kSpan / 2 ? -kSpan / 2 : value;
    if (R == Rule::UnsignedSaturate) result = value > kSpan - 1 ? kSpan - 1 : value < 0 ? 0 : value;
    if (R == Rule::SignedHalve || R == Rule::UnsignedHalve) result = value >> 1;
    return static_cast<u32>(result) & (kSpan - 1);
}

template <Rule R, Lanes L>
bool parallel(Core& c, const Op& op) {
    constexpr unsigned kWidth = L == Lanes::Add8 || L == Lanes::Sub8 ? 8 : 16;
    const u32 n = c.r[op.rn];
    u32 m = c.r[op.rm];
    if (L == Lanes::Asx || L == Lanes::Sax) m = (m >> 16) | (m << 16);
    u32 result = 0;
    unsigned ge_bits = 0;
    for (unsigned i = 0; i < 32; i += kWidth) {
        const bool subtract =
            L == Lanes::Sub8 || L == Lanes::Sub16 || (L == Lanes::Asx && i == 0) || (L == Lanes::Sax && i != 0);
        const i32 a = is_signed(R) ? sign_extend(n >> i, kWidth) : s(bits(n, i, kWidth));
        const i32 b = is_signed(R) ? sign_extend(m >> i, kWidth) : s(bits(m, i, kWidth));
        bool ge = false;
        result |= lane<R, kWidth>(a, b, subtract, ge) << i;
        if (ge) ge_bits |= (kWidth == 8 ? 1U : 3U) << (i / 8);
    }
    if (R == Rule::Signed || R == Rule::Unsigned) c.ge = static_cast<u8>(ge_bits);
    c.r[op.rd] = result;
    return true;
}

inline bool sel(Core& c, const Op& op) {
    u32 mask = 0;
    for (unsigned i = 0; i < 4; i++)
        if (bit(c.ge, i)) mask |= 0xFFU << (8 * i);
    c.r[op.rd] = (c.r[op.rn] & mask) | (c.r[op.rm] & ~mask);
    return true;
}

/// PKHBT (aux LSL), PKHTB (aux ASR): imm the shift amount.
template <bool Tb>
bool pack_halves(Core& c, const Op& op) {
    const u32 n = c.r[op.rn];
    const u32 m = Tb ? w(s(c.r[op.rm]) >> op.imm) : c.r[op.rm] << op.imm;
    c.r[op.rd] = Tb ? (n & 0xFFFF0000U) | (m & 0xFFFF) : (m & 0xFFFF0000U) | (n & 0xFFFF);
    return true;
}

}  // namespace talpa::board::cpu
