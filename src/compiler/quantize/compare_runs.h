// How far a quantized network is from its float original, on samples: foretold by float arithmetic that rounds every
// value as the quantized network does.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "compiler/quantize/calibrate.h"

namespace talpa::compiler {

/// 10 log10(signal energy / energy of the difference); 200 for no difference.
[[nodiscard]] double snr_db(std::span<const float> exact, std::span<const float> actual);

/// Median over the samples of the outputs' signal-to-noise ratio. `expected[i]`: sample i's float outputs, joined.
[[nodiscard]] host::Result<double> output_snr(const Graph& quantized, std::span<const Sample> samples,
                                              std::span<const std::vector<float>> expected, unsigned threads);

/// How a quantized network judges samples, against the float one.
struct Agreement {
    std::size_t samples = 0, same_top1 = 0;
    double median_snr_db = 0;
    std::vector<std::size_t> different{};  ///< samples whose top-1 differs
};
/// By the first output, whose last dimension holds the classes.
[[nodiscard]] host::Result<Agreement> agreement(const Graph& exact, const Graph& quantized,
                                                std::span<const Sample> samples, unsigned threads);

struct LayerNoise {
    ValueId value = 0;
    double snr_db = 0;         ///< of the value, errors of all layers before included
    double low = 0, high = 0;  ///< of the float value in these samples
};
/// Every quantized value that a node computes, in the graph's order. `exact` and `quantized` share their first ids.
[[nodiscard]] host::Result<std::vector<LayerNoise>> layer_noise(const Graph& exact, const Graph& quantized,
                                                                std::span<const Sample> samples, unsigned threads);

}  // namespace talpa::compiler
