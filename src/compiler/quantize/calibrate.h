// Runs the float network over the calibration samples and remembers, for each value, what quantization needs to know.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/host/error.h"
#include "compiler/graph/graph.h"
#include "compiler/quantize/histogram.h"

namespace talpa::compiler {

/// One inference's inputs, in the graph's order, C order.
using Sample = std::vector<std::vector<float>>;

struct Calibration {
    std::vector<Histogram> values;                   ///< by value; empty for constants
    std::vector<std::vector<double>> channel_means;  ///< by value: mean over all but the last dimension
    std::vector<std::vector<double>> channel_peaks;  ///< by value: greatest magnitude, likewise
    std::vector<std::vector<float>> outputs;         ///< of each sample, the outputs one after another
    std::size_t samples = 0;
};

/// `progress` is called with the number of samples done, from any thread. The result depends neither on `threads` nor
/// on the order of the samples, but for `outputs`. Errors: no samples, or those of the executor.
[[nodiscard]] host::Result<Calibration> calibrate(const Graph& graph, std::span<const Sample> samples, unsigned threads,
                                                  const std::function<void(std::size_t)>& progress = {});

/// Calls work(sample index, worker index) for all samples on `threads` threads; the first error ends it.
[[nodiscard]] host::Result<void> for_each_sample(std::size_t count, unsigned threads,
                                                 const std::function<host::Result<void>(std::size_t, unsigned)>& work);

}  // namespace talpa::compiler
