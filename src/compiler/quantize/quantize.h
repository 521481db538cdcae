// Post-training quantization: a float graph and calibration samples in, the same graph with every value that the NPU
// computes quantized out. Per-channel symmetric int8 weights, per-tensor activations, int32 biases. (ethos-u65, 9.7)
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/quantize/calibrate.h"
#include "compiler/quantize/range.h"

namespace talpa::compiler {

enum class Activations : std::uint8_t {
    Int8,
    Int16,
    Mixed,  ///< 16 bits for what residual additions read and write, whose errors no later layer divides by its gain
};
[[nodiscard]] std::optional<Activations> find_activations(std::string_view name);

struct QuantizeOptions {
    std::optional<Observer> observer;  ///< none: the one whose outputs are closest to float on the samples
    Activations activations = Activations::Int8;
    bool bias_correction = true;  ///< takes the mean error of rounded weights out of the biases
    /// Also measures each layer's mean error on some samples and takes it out (correct.h). None: where activations have
    /// 16 bits; with 8 it follows the samples more than the network.
    std::optional<bool> measured_correction;
    bool equalisation = true;  ///< tries cross-layer equalisation where channels are uneven, keeps it if it helps
    unsigned threads = 1;
    std::function<void(std::string_view what, std::size_t done, std::size_t total)> progress;
};

struct Quantized {
    Graph graph;  ///< values of the float graph keep their ids; new ones (rounded weights, biases) follow
    Observer observer = Observer::Mse;
    bool equalised = false;
    double judged_snr_db = 0;           ///< of the outputs on the judged samples; 0 where nothing was to be chosen
    std::vector<std::string> warnings;  ///< tensors that were constant in calibration, channels of zeros …
};

/// `graph`: batch norms folded, activations fused, not yet quantized. Errors: no samples; numbers that are not finite,
/// by tensor; operators that have no float kernel.
[[nodiscard]] host::Result<Quantized> quantize(const Graph& graph, std::span<const Sample> samples,
                                               const QuantizeOptions& options);

/// The same from a calibration that has been done.
[[nodiscard]] host::Result<Quantized> apply_calibration(const Graph& graph, const Calibration& calibration,
                                                        Observer observer, const QuantizeOptions& options);

}  // namespace talpa::compiler
