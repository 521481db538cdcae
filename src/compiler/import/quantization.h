// Quantization as every format has it, once it has been found in the file: scales, zero points and limits checked and
// put together, values quantized and read as the reals that they stand for.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compiler/graph/builder.h"

namespace talpa::compiler::import {

/// What a file says. `axis` counts only where there are several scales.
struct FoundQuantization {
    DType type = DType::Int8;
    std::vector<double> scales{};
    std::vector<std::int64_t> zero_points{};  ///< none: all 0; one: of every scale
    int axis = -1;
    std::optional<std::pair<std::int64_t, std::int64_t>> limits{};  ///< none: all that the type can hold
};
/// Of a value of `shape`. Errors: a type that holds no quantized numbers, counts and axis that do not belong together,
/// scales that are not finite and positive, zero points outside the limits.
[[nodiscard]] host::Result<Quantization> quantization_of(const FoundQuantization& found, const Shape& shape);

/// Reals to integers: a Requantize that joins the operator before it later. Errors: what is no reals; an activation
/// with several scales.
[[nodiscard]] host::Result<ValueId> quantize(Builder& b, ValueId x, const Quantization& q, const std::string& name);

/// The value behind integers that are now said to stand for reals; makes no node. Errors: another quantization than the
/// value was given, another type, the result of an operator on integers.
[[nodiscard]] host::Result<ValueId> dequantize(Builder& b, ValueId from, const Quantization& q);

}  // namespace talpa::compiler::import
