#include "compiler/lower/rescale.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace talpa::compiler {

npu::Scale to_scale(double factor, Arithmetic arithmetic) {
    int exponent = 0;
    const double mantissa = std::frexp(factor, &exponent) * 2147483648.0;
    auto multiplier =
        static_cast<std::uint64_t>(arithmetic == Arithmetic::Tosa ? std::nearbyint(mantissa) : std::round(mantissa));
    int shift = 31 - exponent;
    if (arithmetic == Arithmetic::Tosa) {
        if (multiplier == std::uint64_t{1} << 31) {
            multiplier >>= 1;
            --shift;
        }
        if (shift > 62) {
            multiplier >>= std::min(31, shift - 62);
            shift = 62;
        }
    } else if (shift > 63) {
        multiplier = 0;
        shift = 16;
    }
    // Factors of 2^31 and more: the multiplier has one bit left over at most.
    if (shift < 0) {
        multiplier = std::min<std::uint64_t>(multiplier << std::min(-shift, 8), 0xFFFFFFFFu);
        shift = 0;
    }
    return {static_cast<std::uint32_t>(multiplier), static_cast<std::uint8_t>(shift)};
}

std::int64_t apply_scale(std::int64_t value, npu::Scale scale, npu::Rounding rounding) {
    __extension__ using Wide = __int128;
    Wide product = Wide{value} * scale.multiplier;
    if (scale.shift > 0) product += Wide{1} << (scale.shift - 1);
    if (rounding == npu::Rounding::Tfl && scale.shift > 31) product += value >= 0 ? (1 << 30) : -(1 << 30);
    return static_cast<std::int64_t>(product >> scale.shift);
}

npu::Scale average_scale(std::uint32_t n) {
    const auto k = static_cast<unsigned>(std::bit_width(n - 1));
    const std::uint64_t numerator = (std::uint64_t{1} << (31 + k)) + (std::uint64_t{1} << k);
    return {static_cast<std::uint32_t>(numerator / n), static_cast<std::uint8_t>(31 + k)};
}

std::int64_t quantize(double real, const Quantization& q) {
    const double v = std::nearbyint(real / q.scales[0]) + q.zero_points[0];
    return static_cast<std::int64_t>(std::clamp(v, static_cast<double>(q.min), static_cast<double>(q.max)));
}

}  // namespace talpa::compiler
