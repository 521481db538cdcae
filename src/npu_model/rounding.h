// The NPU's rounded scaling (ethos-u65, section 5.1), exact: the product of a value of up to 64 bits and an unsigned
// 32-bit multiplier does not fit 64 bits, so it is formed in 128.
#pragma once

#include <cstdint>

#include "npu/operation.h"

namespace talpa::npu_model {

using Wide = __int128;

/// Saturates to 64 bits. Nothing the NPU stores is that large, so a later clamp gives what an endless register would.
[[nodiscard]] constexpr std::int64_t narrow(Wide v) {
    return v > INT64_MAX ? INT64_MAX : v < INT64_MIN ? INT64_MIN : static_cast<std::int64_t>(v);
}

/// v * multiplier / 2^shift, rounded as `mode` says; shift 0..90. TFL is the closed form of the framework's two steps:
/// a doubling high multiply, which rounds half up at bit 31, then a shift by what is left, which rounds half away from
/// zero by the sign of v. Up to shift 31 there is no second step.
[[nodiscard]] constexpr std::int64_t scale(std::int64_t v, std::uint32_t multiplier, unsigned shift,
                                           npu::Rounding mode) {
    Wide product = Wide{v} * multiplier;
    if (mode == npu::Rounding::Truncate) return narrow(product / (Wide{1} << shift));
    if (shift > 0) product += Wide{1} << (shift - 1);
    if (mode == npu::Rounding::Tfl && shift > 31) product += v >= 0 ? Wide{1} << 30 : -(Wide{1} << 30);
    return narrow(product >> shift);
}
[[nodiscard]] constexpr std::int64_t scale(std::int64_t v, npu::Scale s, npu::Rounding mode) {
    return scale(v, s.multiplier, s.shift, mode);
}

/// Rounds once, half away from zero: what 8-bit ADD and SUB do under TFL when both operands are multiplied
/// (section 5.6).
[[nodiscard]] constexpr std::int64_t scale_half_away(std::int64_t v, npu::Scale s) {
    const Wide product = Wide{v} * s.multiplier;
    const Wide half = s.shift > 0 ? Wide{1} << (s.shift - 1) : 0;
    const Wide magnitude = ((product < 0 ? -product : product) + half) >> s.shift;
    return narrow(product < 0 ? -magnitude : magnitude);
}

/// The low `bits` bits of v, as a signed number.
[[nodiscard]] constexpr std::int64_t wrap_to(std::int64_t v, unsigned bits) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(v) << (64 - bits)) >> (64 - bits);
}

}  // namespace talpa::npu_model
