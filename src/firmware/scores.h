// From a method's output to the top classes: logits of any type, softmax, the best k. Single precision, no C library.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/tensor.h"

namespace talpa::firmware {

struct Score {
    std::uint32_t index = 0;
    float logit = 0;
    float probability = 0;
};

/// How integers of an output become real numbers; scale 0: unknown, they are taken as they are.
struct OutputScale {
    float scale = 0;
    std::int32_t zero_point = 0;
};

/// e^x to 2 units in the last place; 0 below -87, infinity above 88.7.
[[nodiscard]] float exponential(float x);

/// Element `i` of a tensor of type float32, int8, uint8, int16, int32 or int64 as a number; 0 for other types.
[[nodiscard]] float element(const runtime::Tensor& tensor, std::size_t i, OutputScale scale);

/// An element of an integer tensor as it is; 0 for other types.
[[nodiscard]] std::int64_t integer_element(const runtime::Tensor& tensor, std::size_t i);

/// The best `top.size()` elements, best first, the lower index first among equals; how many there are. Probabilities
/// are a softmax over all elements, unless these already are a distribution (none negative, sum within 1 % of 1).
[[nodiscard]] std::size_t best_scores(const runtime::Tensor& tensor, OutputScale scale, std::span<Score> top);

}  // namespace talpa::firmware
