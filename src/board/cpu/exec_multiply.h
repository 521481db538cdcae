// Multiplication and division, the halfword and dual forms of the DSP extension included.
#pragma once

#include "board/cpu/op.h"

namespace talpa::board::cpu {

inline bool mul(Core& c, const Op& op) {
    c.r[op.rd] = c.r[op.rn] * c.r[op.rm];
    return true;
}
/// MULS (16-bit, outside IT): N and Z only.
inline bool muls(Core& c, const Op& op) {
    const u32 result = c.r[op.rn] * c.r[op.rm];
    c.r[op.rd] = result;
    c.nz = nz_flags(result);
    return true;
}
inline bool mla(Core& c, const Op& op) {
    c.r[op.rd] = c.r[op.ra] + c.r[op.rn] * c.r[op.rm];
    return true;
}
inline bool mls(Core& c, const Op& op) {
    c.r[op.rd] = c.r[op.ra] - c.r[op.rn] * c.r[op.rm];
    return true;
}

[[nodiscard]] inline i64 wide(u32 value) {
    return static_cast<i32>(value);
}
/// Signed halfword of a register.
template <bool Top>
[[nodiscard]] inline i64 half(u32 value) {
    return Top ? static_cast<i32>(value) >> 16 : static_cast<i16>(value);
}
/// A sum that must fit 32 bits, else Q; the low word is the result either way.
[[nodiscard]] inline u32 sum_with_q(Core& c, i64 value) {
    if (value != static_cast<i32>(value)) c.q = 1;
    return static_cast<u32>(value);
}

// Long: rd low word, ra high word.
[[nodiscard]] inline u64 accumulator(const Core& c, const Op& op) {
    return (u64{c.r[op.ra]} << 32) | c.r[op.rd];
}
inline void set_accumulator(Core& c, const Op& op, u64 value) {
    c.r[op.rd] = static_cast<u32>(value);
    c.r[op.ra] = static_cast<u32>(value >> 32);
}
template <bool Signed, bool Accumulate>
bool multiply_long(Core& c, const Op& op) {
    const u64 product = Signed ? static_cast<u64>(wide(c.r[op.rn]) * wide(c.r[op.rm])) : u64{c.r[op.rn]} * c.r[op.rm];
    set_accumulator(c, op, product + (Accumulate ? accumulator(c, op) : 0));
    return true;
}
inline bool umaal(Core& c, const Op& op) {
    set_accumulator(c, op, u64{c.r[op.rn]} * c.r[op.rm] + c.r[op.rd] + c.r[op.ra]);
    return true;
}

// SMULxy, SMLAxy, SMLALxy: N and M choose the top halves.
template <bool N, bool M, bool Accumulate>
bool multiply_halves(Core& c, const Op& op) {
    const i64 product = half<N>(c.r[op.rn]) * half<M>(c.r[op.rm]);
    c.r[op.rd] = Accumulate ? sum_with_q(c, product + wide(c.r[op.ra])) : static_cast<u32>(product);
    return true;
}
template <bool N, bool M>
bool smlal_halves(Core& c, const Op& op) {
    set_accumulator(c, op, accumulator(c, op) + static_cast<u64>(half<N>(c.r[op.rn]) * half<M>(c.r[op.rm])));
    return true;
}
// SMULWy, SMLAWy: a word times a half, the upper 32 of 48 bits.
template <bool M, bool Accumulate>
bool multiply_word_half(Core& c, const Op& op) {
    const i64 product = (wide(c.r[op.rn]) * half<M>(c.r[op.rm])) >> 16;
    c.r[op.rd] = Accumulate ? sum_with_q(c, product + wide(c.r[op.ra])) : static_cast<u32>(product);
    return true;
}

// SMUAD, SMUSD, SMLAD, SMLSD, SMLALD, SMLSLD; X exchanges the halves of rm.
template <bool Subtract, bool X>
[[nodiscard]] inline i64 dual_product(const Core& c, const Op& op) {
    const u32 n = c.r[op.rn];
    const u32 m = c.r[op.rm];
    const i64 first = half<false>(n) * (X ? half<true>(m) : half<false>(m));
    const i64 second = half<true>(n) * (X ? half<false>(m) : half<true>(m));
    return Subtract ? first - second : first + second;
}
template <bool Subtract, bool X, bool Accumulate>
bool multiply_dual(Core& c, const Op& op) {
    c.r[op.rd] = sum_with_q(c, dual_product<Subtract, X>(c, op) + (Accumulate ? wide(c.r[op.ra]) : 0));
    return true;
}
template <bool Subtract, bool X>
bool multiply_dual_long(Core& c, const Op& op) {
    set_accumulator(c, op, accumulator(c, op) + static_cast<u64>(dual_product<Subtract, X>(c, op)));
    return true;
}

// SMMUL, SMMLA, SMMLS: the upper word, rounded with R.
enum class Most : u8 { Multiply, Add, Subtract };
template <Most K, bool R>
bool most_significant(Core& c, const Op& op) {
    const u64 product = static_cast<u64>(wide(c.r[op.rn]) * wide(c.r[op.rm]));
    const u64 high = u64{c.r[op.ra]} << 32;
    u64 result = K == Most::Multiply ? product : K == Most::Add ? high + product : high - product;
    if (R) result += 0x80000000U;
    c.r[op.rd] = static_cast<u32>(result >> 32);
    return true;
}

template <bool Accumulate>
bool sum_of_differences(Core& c, const Op& op) {
    u32 sum = Accumulate ? c.r[op.ra] : 0;
    for (unsigned i = 0; i < 32; i += 8) {
        const i32 difference = s((c.r[op.rn] >> i) & 0xFF) - s((c.r[op.rm] >> i) & 0xFF);
        sum += w(difference < 0 ? -difference : difference);
    }
    c.r[op.rd] = sum;
    return true;
}

/// Set by CCR.DIV_0_TRP; the machine keeps it beside the core.
[[nodiscard]] bool traps_division_by_zero(const Core& core);

inline bool udiv(Core& c, const Op& op) {
    const u32 divisor = c.r[op.rm];
    if (divisor == 0 && traps_division_by_zero(c)) return raise(c, op, Fault::DivideByZero);
    c.r[op.rd] = divisor == 0 ? 0 : c.r[op.rn] / divisor;
    return true;
}
inline bool sdiv(Core& c, const Op& op) {
    const u32 divisor = c.r[op.rm];
    if (divisor == 0 && traps_division_by_zero(c)) return raise(c, op, Fault::DivideByZero);
    if (divisor == 0)
        c.r[op.rd] = 0;
    else if (divisor == 0xFFFFFFFFU)
        c.r[op.rd] = 0U - c.r[op.rn];  // 80000000 / -1 is 80000000
    else
        c.r[op.rd] = w(s(c.r[op.rn]) / s(divisor));
    return true;
}

}  // namespace talpa::board::cpu
