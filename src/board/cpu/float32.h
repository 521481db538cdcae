// Single-precision arithmetic exactly as the FPU does it: four rounding modes, flush-to-zero, default NaN, cumulative
// exception flags, NaN propagation. Values are bit patterns. Written from the arithmetic, with host floating point only
// where it provably gives the same bits and flags.
#pragma once

#include "board/cpu/types.h"

namespace talpa::board::cpu::float32 {

// FPSCR bits.
inline constexpr u32 kIoc = 1U << 0;  ///< invalid operation
inline constexpr u32 kDzc = 1U << 1;  ///< division by zero
inline constexpr u32 kOfc = 1U << 2;
inline constexpr u32 kUfc = 1U << 3;
inline constexpr u32 kIxc = 1U << 4;
inline constexpr u32 kIdc = 1U << 7;  ///< a denormal input was flushed
inline constexpr u32 kFz = 1U << 24;
inline constexpr u32 kDn = 1U << 25;
inline constexpr u32 kAhp = 1U << 26;
inline constexpr u32 kWritable = 0xF7C0009F;  ///< N Z C V AHP DN FZ RMode and the flags

enum class Round : u8 { Nearest = 0, Up = 1, Down = 2, Zero = 3, TiesAway = 4 };
[[nodiscard]] constexpr Round mode_of(u32 fpscr) {
    return static_cast<Round>((fpscr >> 22) & 3);
}

inline constexpr u32 kSignBit = 0x80000000U;
[[nodiscard]] constexpr u32 negate(u32 a) {
    return a ^ kSignBit;
}

// Each takes FPSCR by reference to add flags to it.
[[nodiscard]] u32 add(u32 a, u32 b, u32& fpscr);
[[nodiscard]] u32 sub(u32 a, u32 b, u32& fpscr);
[[nodiscard]] u32 mul(u32 a, u32 b, u32& fpscr);
[[nodiscard]] u32 div(u32 a, u32 b, u32& fpscr);
[[nodiscard]] u32 sqrt(u32 a, u32& fpscr);
/// addend + a * b, rounded once.
[[nodiscard]] u32 fused_multiply_add(u32 addend, u32 a, u32 b, u32& fpscr);
[[nodiscard]] u32 max_number(u32 a, u32 b, u32& fpscr);
[[nodiscard]] u32 min_number(u32 a, u32 b, u32& fpscr);
/// NZCV in bits 31:28; quiet NaNs are invalid too when `signal_all`.
[[nodiscard]] u32 compare(u32 a, u32 b, bool signal_all, u32& fpscr);
/// To an integral value in floating point; `exact` sets IXC when it differs.
[[nodiscard]] u32 round_to_integral(u32 a, Round mode, bool exact, u32& fpscr);
/// To fixed point with `fraction` bits, saturated to `width` bits; the result is extended to 32 bits by its signedness.
[[nodiscard]] u32 to_fixed(u32 a, unsigned fraction, unsigned width, bool is_unsigned, Round mode, u32& fpscr);
/// From a 32-bit operand that has been extended to 64 bits.
[[nodiscard]] u32 from_fixed(i64 value, unsigned fraction, Round mode, u32& fpscr);
[[nodiscard]] u32 from_half(u32 half, u32& fpscr);
[[nodiscard]] u32 to_half(u32 a, u32& fpscr);

}  // namespace talpa::board::cpu::float32
