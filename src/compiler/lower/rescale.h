// Real factors as the NPU's multiplier and shift, and the integer meaning of a rescale: what lowering programs and what
// tables are computed with. (ethos-u65, sections 5.1, 5.3 and 9.7)
#pragma once

#include <cstdint>

#include "compiler/graph/graph.h"
#include "npu/operation.h"

namespace talpa::compiler {

/// Multiplier and shift for a factor >= 0, by the rules of the arithmetic.
[[nodiscard]] npu::Scale to_scale(double factor, Arithmetic arithmetic);
[[nodiscard]] inline npu::Rounding rounding_of(Arithmetic arithmetic) {
    return arithmetic == Arithmetic::Tosa ? npu::Rounding::Natural : npu::Rounding::Tfl;
}

/// value * multiplier / 2^shift, rounded as the NPU's output unit rounds.
[[nodiscard]] std::int64_t apply_scale(std::int64_t value, npu::Scale scale, npu::Rounding rounding);

/// Multiplier and shift of an average over n positions (section 5.5).
[[nodiscard]] npu::Scale average_scale(std::uint32_t n);

/// real / scale + zero point, rounded half to even, clamped to the type's limits in `q`.
[[nodiscard]] std::int64_t quantize(double real, const Quantization& q);

}  // namespace talpa::compiler
