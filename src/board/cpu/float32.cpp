#include "board/cpu/float32.h"

#include <bit>
#include <cmath>

namespace talpa::board::cpu::float32 {

namespace {

__extension__ using u128 = unsigned __int128;

constexpr u32 kDefaultNan = 0x7FC00000;
constexpr u32 kInfinity = 0x7F800000;
constexpr u32 kQuiet = 0x00400000;
constexpr int kMinExponent = -126;

enum class Kind : u8 { Zero, Finite, Infinite, Quiet, Signalling };

/// sig has its leading one at bit 62: the value is sig / 2^62 * 2^exp.
struct Number {
    Kind kind;
    bool sign;
    int exp;
    u64 sig;
    u32 pattern;
    [[nodiscard]] bool nan() const { return kind >= Kind::Quiet; }
};

Number unpack(u32 a, u32& fpscr) {
    const bool sign = (a >> 31) != 0;
    const int exp = static_cast<int>((a >> 23) & 0xFF);
    const u32 fraction = a & 0x7FFFFF;
    if (exp == 255) {
        if (fraction == 0) return {Kind::Infinite, sign, 0, 0, a};
        return {(fraction & kQuiet) != 0 ? Kind::Quiet : Kind::Signalling, sign, 0, 0, a};
    }
    if (exp == 0) {
        if (fraction != 0 && (fpscr & kFz) != 0) {
            fpscr |= kIdc;
            return {Kind::Zero, sign, 0, 0, a & kSignBit};
        }
        if (fraction == 0) return {Kind::Zero, sign, 0, 0, a};
        const int shift = std::countl_zero(u64{fraction}) - 1;
        return {Kind::Finite, sign, kMinExponent + 39 - shift, u64{fraction} << shift, a};
    }
    return {Kind::Finite, sign, exp - 127, u64{fraction | 0x800000} << 39, a};
}

u32 zero(bool sign) {
    return sign ? kSignBit : 0;
}
u32 infinity(bool sign) {
    return zero(sign) | kInfinity;
}

u32 invalid(u32& fpscr) {
    fpscr |= kIoc;
    return kDefaultNan;
}

u32 process_nan(const Number& n, u32& fpscr) {
    if (n.kind == Kind::Signalling) fpscr |= kIoc;
    return (fpscr & kDn) != 0 ? kDefaultNan : n.pattern | kQuiet;
}

/// The NaN that wins: signalling before quiet, earlier before later. Null when there is none.
const Number* first_nan(const Number& a, const Number& b) {
    if (a.kind == Kind::Signalling) return &a;
    if (b.kind == Kind::Signalling) return &b;
    if (a.kind == Kind::Quiet) return &a;
    return b.kind == Kind::Quiet ? &b : nullptr;
}

bool rounds_up(Round mode, bool sign, bool odd, u64 remainder, u64 half) {
    switch (mode) {
        case Round::Nearest:
            return remainder > half || (remainder == half && odd);
        case Round::TiesAway:
            return remainder >= half;
        case Round::Up:
            return remainder != 0 && !sign;
        case Round::Down:
            return remainder != 0 && sign;
        default:
            return false;
    }
}

/// Shifts right, keeping a one in the lowest bit when ones were lost.
u64 shift_jam(u64 value, int count) {
    if (count == 0) return value;
    if (count > 63) return value != 0 ? 1 : 0;
    return (value >> count) | ((value << (64 - count)) != 0 ? 1 : 0);
}
u128 shift_jam(u128 value, int count) {
    if (count == 0) return value;
    if (count > 127) return value != 0 ? 1 : 0;
    return (value >> count) | ((value << (128 - count)) != 0 ? 1 : 0);
}

/// The finite value sig / 2^62 * 2^exp (leading one at bit 62, lowest bit sticky) as a single; tiny before rounding.
u32 round_pack(bool sign, int exp, u64 sig, Round mode, u32& fpscr) {
    const bool tiny = exp < kMinExponent;
    if (tiny && (fpscr & kFz) != 0) {
        fpscr |= kUfc;
        return zero(sign);
    }
    const int shift = 39 + (tiny ? kMinExponent - exp : 0);
    u64 mantissa = 0;
    u64 remainder = 1;
    u64 half = 2;
    if (shift < 64) {
        mantissa = sig >> shift;
        remainder = sig & ((u64{1} << shift) - 1);
        half = u64{1} << (shift - 1);
    }
    if (remainder != 0) fpscr |= tiny ? kUfc | kIxc : kIxc;
    if (rounds_up(mode, sign, (mantissa & 1) != 0, remainder, half)) mantissa++;
    const u64 pattern = tiny ? mantissa : (static_cast<u64>(exp - kMinExponent) << 23) + mantissa;
    if (pattern >= kInfinity) {
        fpscr |= kOfc | kIxc;
        const bool to_infinity = mode == Round::Nearest || mode == Round::TiesAway || (mode == Round::Up && !sign) ||
                                 (mode == Round::Down && sign);
        return zero(sign) | (to_infinity ? kInfinity : kInfinity - 1);
    }
    return zero(sign) | w(pattern);
}

u32 normalize_round_pack(bool sign, int exp, u64 sig, u32& fpscr) {
    const int shift = std::countl_zero(sig) - 1;
    if (shift < 0) return round_pack(sign, exp + 1, shift_jam(sig, 1), mode_of(fpscr), fpscr);
    return round_pack(sign, exp - shift, sig << shift, mode_of(fpscr), fpscr);
}

u32 exact_zero(u32 fpscr) {
    return zero(mode_of(fpscr) == Round::Down);
}

u32 add_numbers(const Number& a, const Number& b, bool b_sign, u32& fpscr) {
    if (const Number* nan = first_nan(a, b)) return process_nan(*nan, fpscr);
    if (a.kind == Kind::Infinite || b.kind == Kind::Infinite) {
        if (a.kind == b.kind && a.sign != b_sign) return invalid(fpscr);
        return infinity(a.kind == Kind::Infinite ? a.sign : b_sign);
    }
    if (a.kind == Kind::Zero && b.kind == Kind::Zero) return a.sign == b_sign ? zero(a.sign) : exact_zero(fpscr);
    if (a.kind == Kind::Zero) return round_pack(b_sign, b.exp, b.sig, mode_of(fpscr), fpscr);
    if (b.kind == Kind::Zero) return round_pack(a.sign, a.exp, a.sig, mode_of(fpscr), fpscr);
    const bool a_larger = a.exp > b.exp || (a.exp == b.exp && a.sig >= b.sig);
    const Number& large = a_larger ? a : b;
    const Number& small = a_larger ? b : a;
    const bool sign = a_larger ? a.sign : b_sign;
    const u64 aligned = shift_jam(small.sig, large.exp - small.exp);
    if (a.sign == b_sign) return normalize_round_pack(sign, large.exp, large.sig + aligned, fpscr);
    const u64 difference = large.sig - aligned;
    return difference == 0 ? exact_zero(fpscr) : normalize_round_pack(sign, large.exp, difference, fpscr);
}

/// Whether host arithmetic may answer: rounding to nearest, no flushing, and inexact already recorded.
bool host_may_answer(u32 fpscr) {
    return (fpscr & (kFz | 0x00C00000U | kIxc)) == kIxc;
}
/// Whether its answer needs no other flag: a normal number away from both ends (the lower one since tininess is judged
/// before rounding).
bool is_plain(u32 result) {
    const u32 exp = (result >> 23) & 0xFF;
    return exp >= 2 && exp <= 254;
}
float as_float(u32 a) {
    return std::bit_cast<float>(a);
}

u32 larger_or_smaller(u32 a, u32 b, bool larger, u32& fpscr) {
    Number x = unpack(a, fpscr);
    Number y = unpack(b, fpscr);
    if (x.kind == Kind::Quiet && !y.nan()) return y.pattern;
    if (y.kind == Kind::Quiet && !x.nan()) return x.pattern;
    if (const Number* nan = first_nan(x, y)) return process_nan(*nan, fpscr);
    const auto order = [](u32 p) {
        return (p >> 31) != 0 ? -static_cast<i64>(p & ~kSignBit) - 1 : static_cast<i64>(p);
    };
    return (order(x.pattern) > order(y.pattern)) == larger ? x.pattern : y.pattern;
}

}  // namespace

u32 add(u32 a, u32 b, u32& fpscr) {
    if (host_may_answer(fpscr)) {
        const u32 result = std::bit_cast<u32>(as_float(a) + as_float(b));
        if (is_plain(result)) return result;
    }
    const Number x = unpack(a, fpscr);
    const Number y = unpack(b, fpscr);
    return add_numbers(x, y, y.sign, fpscr);
}

u32 sub(u32 a, u32 b, u32& fpscr) {
    if (host_may_answer(fpscr)) {
        const u32 result = std::bit_cast<u32>(as_float(a) - as_float(b));
        if (is_plain(result)) return result;
    }
    const Number x = unpack(a, fpscr);
    const Number y = unpack(b, fpscr);
    return add_numbers(x, y, !y.sign, fpscr);
}

u32 mul(u32 a, u32 b, u32& fpscr) {
    if (host_may_answer(fpscr)) {
        const u32 result = std::bit_cast<u32>(as_float(a) * as_float(b));
        if (is_plain(result)) return result;
    }
    const Number x = unpack(a, fpscr);
    const Number y = unpack(b, fpscr);
    if (const Number* nan = first_nan(x, y)) return process_nan(*nan, fpscr);
    const bool sign = x.sign != y.sign;
    if (x.kind == Kind::Infinite || y.kind == Kind::Infinite)
        return x.kind == Kind::Zero || y.kind == Kind::Zero ? invalid(fpscr) : infinity(sign);
    if (x.kind == Kind::Zero || y.kind == Kind::Zero) return zero(sign);
    return normalize_round_pack(sign, x.exp + y.exp, ((x.sig >> 39) * (y.sig >> 39)) << 16, fpscr);
}

u32 div(u32 a, u32 b, u32& fpscr) {
    if (host_may_answer(fpscr)) {
        const u32 result = std::bit_cast<u32>(as_float(a) / as_float(b));
        if (is_plain(result)) return result;
    }
    const Number x = unpack(a, fpscr);
    const Number y = unpack(b, fpscr);
    if (const Number* nan = first_nan(x, y)) return process_nan(*nan, fpscr);
    const bool sign = x.sign != y.sign;
    if (x.kind == Kind::Infinite) return y.kind == Kind::Infinite ? invalid(fpscr) : infinity(sign);
    if (y.kind == Kind::Infinite) return zero(sign);
    if (y.kind == Kind::Zero) {
        if (x.kind == Kind::Zero) return invalid(fpscr);
        fpscr |= kDzc;
        return infinity(sign);
    }
    if (x.kind == Kind::Zero) return zero(sign);
    const u64 divisor = y.sig >> 39;
    const u64 quotient = x.sig / divisor;  // 39 or 40 bits: the leading one at 38 or 39
    const u64 sticky = x.sig % divisor != 0 ? 1 : 0;
    return normalize_round_pack(sign, x.exp - y.exp, (quotient << 23) | sticky, fpscr);
}

u32 sqrt(u32 a, u32& fpscr) {
    const Number x = unpack(a, fpscr);
    if (x.nan()) return process_nan(x, fpscr);
    if (x.kind == Kind::Zero) return x.pattern;
    if (x.sign) return invalid(fpscr);
    if (x.kind == Kind::Infinite) return x.pattern;
    // The radicand is the value times 2^62 with an even exponent outside, so its root counts 2^31 for one.
    const bool odd = (x.exp & 1) != 0;
    const u64 radicand = odd ? x.sig << 1 : x.sig;
    u64 root = static_cast<u64>(std::sqrt(static_cast<double>(radicand)));
    while (root * root > radicand) root--;
    while ((root + 1) * (root + 1) <= radicand) root++;
    const u64 sticky = root * root != radicand ? 1 : 0;
    return round_pack(false, (odd ? x.exp - 1 : x.exp) / 2, (root << 31) | sticky, mode_of(fpscr), fpscr);
}

u32 fused_multiply_add(u32 addend, u32 a, u32 b, u32& fpscr) {
    if (host_may_answer(fpscr)) {
        const u32 result = std::bit_cast<u32>(std::fma(as_float(a), as_float(b), as_float(addend)));
        if (is_plain(result)) return result;
    }
    const Number z = unpack(addend, fpscr);
    const Number x = unpack(a, fpscr);
    const Number y = unpack(b, fpscr);
    const bool sign = x.sign != y.sign;
    const bool product_infinite = x.kind == Kind::Infinite || y.kind == Kind::Infinite;
    const bool product_zero = x.kind == Kind::Zero || y.kind == Kind::Zero;
    const bool invalid_product = product_infinite && product_zero;
    if (z.kind == Kind::Quiet && invalid_product) return invalid(fpscr);
    if (z.nan() || x.nan() || y.nan()) {
        if (z.kind == Kind::Signalling) return process_nan(z, fpscr);
        const Number* product = first_nan(x, y);
        if (product != nullptr && product->kind == Kind::Signalling) return process_nan(*product, fpscr);
        return process_nan(z.nan() ? z : *product, fpscr);
    }
    if (invalid_product || (product_infinite && z.kind == Kind::Infinite && z.sign != sign)) return invalid(fpscr);
    if (z.kind == Kind::Infinite) return infinity(z.sign);
    if (product_infinite) return infinity(sign);
    if (product_zero) {
        if (z.kind == Kind::Zero) return z.sign == sign ? zero(sign) : exact_zero(fpscr);
        return round_pack(z.sign, z.exp, z.sig, mode_of(fpscr), fpscr);
    }
    // The product with its leading one at bit 125 or 124, the addend's at 124.
    u128 product = static_cast<u128>(x.sig) * y.sig;
    int exp = x.exp + y.exp;
    u128 sum = product;
    bool sum_sign = sign;
    if (z.kind == Kind::Finite) {
        u128 other = static_cast<u128>(z.sig) << 62;
        if (exp >= z.exp) {
            other = shift_jam(other, exp - z.exp);
        } else {
            product = shift_jam(product, z.exp - exp);
            exp = z.exp;
        }
        if (sign == z.sign) {
            sum = product + other;
        } else if (product >= other) {
            sum = product - other;
        } else {
            sum = other - product;
            sum_sign = z.sign;
        }
    }
    if (sum == 0) return exact_zero(fpscr);
    // Down to 64 bits with the leading one at bit 62.
    const u64 high = static_cast<u64>(sum >> 64);
    const int leading = high != 0 ? 127 - std::countl_zero(high) : 63 - std::countl_zero(static_cast<u64>(sum));
    const u64 sig =
        leading > 62 ? static_cast<u64>(shift_jam(sum, leading - 62)) : static_cast<u64>(sum) << (62 - leading);
    return round_pack(sum_sign, exp + leading - 124, sig, mode_of(fpscr), fpscr);
}

u32 max_number(u32 a, u32 b, u32& fpscr) {
    return larger_or_smaller(a, b, true, fpscr);
}
u32 min_number(u32 a, u32 b, u32& fpscr) {
    return larger_or_smaller(a, b, false, fpscr);
}

u32 compare(u32 a, u32 b, bool signal_all, u32& fpscr) {
    const Number x = unpack(a, fpscr);
    const Number y = unpack(b, fpscr);
    if (x.nan() || y.nan()) {
        if (signal_all || x.kind == Kind::Signalling || y.kind == Kind::Signalling) fpscr |= kIoc;
        return 3U << 28;
    }
    const auto order = [](u32 p) { return (p >> 31) != 0 ? -static_cast<i64>(p & ~kSignBit) : static_cast<i64>(p); };
    const i64 difference = order(x.pattern) - order(y.pattern);
    return difference == 0 ? 6U << 28 : difference < 0 ? 8U << 28 : 2U << 28;
}

u32 round_to_integral(u32 a, Round mode, bool exact, u32& fpscr) {
    const Number x = unpack(a, fpscr);
    if (x.nan()) return process_nan(x, fpscr);
    if (x.kind != Kind::Finite || x.exp >= 23) return x.pattern;
    const int shift = 62 - x.exp;  // bits behind the point
    u64 whole = 0;
    u64 remainder = 1;
    u64 half = 2;
    if (shift < 64) {
        whole = x.sig >> shift;
        remainder = x.sig & ((u64{1} << shift) - 1);
        half = u64{1} << (shift - 1);
    }
    if (remainder != 0 && exact) fpscr |= kIxc;
    if (rounds_up(mode, x.sign, (whole & 1) != 0, remainder, half)) whole++;
    return zero(x.sign) | (whole == 0 ? 0 : std::bit_cast<u32>(static_cast<float>(whole)));
}

u32 to_fixed(u32 a, unsigned fraction, unsigned width, bool is_unsigned, Round mode, u32& fpscr) {
    const Number x = unpack(a, fpscr);
    if (x.nan()) {
        fpscr |= kIoc;
        return 0;
    }
    const i64 high = is_unsigned ? (i64{1} << width) - 1 : (i64{1} << (width - 1)) - 1;
    const i64 low = is_unsigned ? 0 : -(i64{1} << (width - 1));
    if (x.kind == Kind::Zero) return 0;
    const int exp = x.exp + static_cast<int>(fraction);
    if (x.kind == Kind::Infinite || exp >= 33) {
        fpscr |= kIoc;
        return w(x.sign ? low : high);
    }
    const int shift = 62 - exp;
    u64 whole = 0;
    u64 remainder = 1;
    u64 half = 2;
    if (shift < 64) {
        whole = x.sig >> shift;
        remainder = x.sig & ((u64{1} << shift) - 1);
        half = u64{1} << (shift - 1);
    }
    if (rounds_up(mode, x.sign, (whole & 1) != 0, remainder, half)) whole++;
    const i64 value = x.sign ? -static_cast<i64>(whole) : static_cast<i64>(whole);
    if (value < low || value > high) {
        fpscr |= kIoc;
        return w(value < low ? low : high);
    }
    if (remainder != 0) fpscr |= kIxc;
    return w(value);
}

u32 from_fixed(i64 value, unsigned fraction, Round mode, u32& fpscr) {
    if (value == 0) return 0;
    const bool sign = value < 0;
    const u64 magnitude = sign ? 0 - static_cast<u64>(value) : static_cast<u64>(value);
    const int shift = std::countl_zero(magnitude) - 1;
    return round_pack(sign, 62 - shift - static_cast<int>(fraction), magnitude << shift, mode, fpscr);
}

u32 from_half(u32 half, u32& fpscr) {
    const u32 sign = (half & 0x8000) << 16;
    const u32 exp = (half >> 10) & 0x1F;
    const u32 fraction = half & 0x3FF;
    if (exp == 31 && (fpscr & kAhp) == 0) {
        if (fraction == 0) return sign | kInfinity;
        if ((fraction & 0x200) == 0) fpscr |= kIoc;
        return (fpscr & kDn) != 0 ? kDefaultNan : sign | kInfinity | kQuiet | (fraction << 13);
    }
    if (exp != 0) return sign | ((exp + 112) << 23) | (fraction << 13);
    if (fraction == 0) return sign;
    const u32 shift = w(std::countl_zero(fraction)) - 21;  // brings the leading one to bit 10
    return sign | ((113 - shift) << 23) | (((fraction << shift) & 0x3FF) << 13);
}

u32 to_half(u32 a, u32& fpscr) {
    const Number x = unpack(a, fpscr);
    const bool alternative = (fpscr & kAhp) != 0;
    const u32 sign = x.sign ? 0x8000 : 0;
    if (x.nan()) {
        if (alternative) {
            fpscr |= kIoc;
            return sign;
        }
        if (x.kind == Kind::Signalling) fpscr |= kIoc;
        if ((fpscr & kDn) != 0) return 0x7E00;
        return sign | 0x7E00 | ((a >> 13) & 0x1FF);
    }
    if (x.kind == Kind::Infinite) {
        if (!alternative) return sign | 0x7C00;
        fpscr |= kIoc;
        return sign | 0x7FFF;
    }
    if (x.kind == Kind::Zero) return sign;
    constexpr int kHalfMinExponent = -14;
    const bool tiny = x.exp < kHalfMinExponent;
    const int shift = 52 + (tiny ? kHalfMinExponent - x.exp : 0);
    u64 mantissa = 0;
    u64 remainder = 1;
    u64 halfway = 2;
    if (shift < 64) {
        mantissa = x.sig >> shift;
        remainder = x.sig & ((u64{1} << shift) - 1);
        halfway = u64{1} << (shift - 1);
    }
    const Round mode = mode_of(fpscr);
    if (rounds_up(mode, x.sign, (mantissa & 1) != 0, remainder, halfway)) mantissa++;
    const u64 pattern = tiny ? mantissa : (static_cast<u64>(x.exp - kHalfMinExponent) << 10) + mantissa;
    if (pattern >= (alternative ? 0x8000U : 0x7C00U)) {
        if (alternative) {
            fpscr |= kIoc;
            return sign | 0x7FFF;
        }
        fpscr |= kOfc | kIxc;
        const bool to_infinity =
            mode == Round::Nearest || (mode == Round::Up && !x.sign) || (mode == Round::Down && x.sign);
        return sign | (to_infinity ? 0x7C00 : 0x7BFF);
    }
    if (remainder != 0) fpscr |= tiny ? kUfc | kIxc : kIxc;
    return sign | w(pattern);
}

}  // namespace talpa::board::cpu::float32
