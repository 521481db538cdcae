// Bias correction by measurement: what quantization shifts a layer's outputs by, on average over the samples, is taken
// out of its bias, layer after layer, each seeing the corrected ones before it.
#pragma once

#include <span>

#include "compiler/quantize/calibrate.h"

namespace talpa::compiler {

/// `quantized` was made from `exact` and keeps the ids of its values; its int32 biases are changed. The samples'
/// feature maps are held all at once, so give a few.
[[nodiscard]] host::Result<void> correct_biases(const Graph& exact, Graph& quantized, std::span<const Sample> samples,
                                                unsigned threads);

}  // namespace talpa::compiler
