// Constants of a graph as numbers: made from vectors, read as reals or integers.
#pragma once

#include <span>

#include "compiler/graph/graph.h"

namespace talpa::compiler {

[[nodiscard]] Value float_constant(std::string name, Shape shape, std::span<const float> numbers);
[[nodiscard]] Value int64_constant(std::string name, Shape shape, std::span<const std::int64_t> numbers);

/// The stored numbers of a constant of any type, widened. The bytes fit the shape (check.h).
[[nodiscard]] std::vector<std::int64_t> stored_integers(const Value& value);
/// The reals that a constant stands for: dequantized where it is quantized.
[[nodiscard]] std::vector<float> real_numbers(const Value& value);

/// Which of a per-channel value's scales belongs to element `index`.
[[nodiscard]] std::size_t channel_of(const Value& value, std::int64_t index);

/// clamp(round-half-even(x / scale) + zero point): as a product with the reciprocal in float32, which is how PT2E
/// quantizes (model-formats, section 1.6), or by division, which is ONNX's rule (4.3).
[[nodiscard]] std::int64_t quantize_number(float x, double scale, std::int32_t zero_point, std::int64_t min,
                                           std::int64_t max, bool by_division = false);

}  // namespace talpa::compiler
