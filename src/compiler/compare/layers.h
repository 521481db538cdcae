// A network seen three times: in float, quantized (foretold by float arithmetic that rounds), and as its program
// computed it on the NPU. Layer by layer: how far quantization takes each from float, and whether the program computes
// each operator as it should from the numbers that reached it, so that the first one that goes wrong has a name.
#pragma once

#include <optional>
#include <vector>

#include "compiler/compare/traced_run.h"
#include "compiler/quantize/calibrate.h"

namespace talpa::compiler {

struct LayerComparison {
    std::uint32_t node = 0;  ///< of the quantized graph
    ValueId value = 0;       ///< its result
    /// Signal to noise against float, errors of all layers before included; 200: no difference.
    double quantized_db = 0;
    std::optional<double> program_db{};  ///< nothing where the program does not hold the value
    /// The program's result against the operator's own, computed in float from the program's operands and rounded: in
    /// steps of the result's quantization. An exact program is within one step, where float and integers round apart.
    std::optional<double> worst_steps{};
    std::size_t elements = 0, off = 0;            ///< all; further than `steps_allowed` away
    std::size_t first_off = 0;                    ///< index of the first such, in C order
    float program_value = 0, expected_value = 0;  ///< of it
    std::uint32_t hidden = 0;  ///< operators computed along with this one, whose results exist nowhere
};

struct NetworkComparison {
    std::vector<LayerComparison> layers;       ///< quantized results, in the graph's order
    std::optional<std::size_t> first_noisy{};  ///< layer whose signal to noise is below the limit
    std::optional<std::size_t> first_wrong{};  ///< layer that the program does not compute as it should
    double output_quantized_db = 0, output_program_db = 0;
    /// The least and the greatest that other outcomes of the same roundings would give. At the logits they lie close
    /// together; a softmax makes decibels of which way its few large numbers happened to go.
    double output_least_db = 0, output_most_db = 0;
};

/// A step for the operator itself, and one for each whose result was rounded on the way and cannot be seen.
[[nodiscard]] constexpr double steps_allowed(std::uint32_t hidden) {
    return 1.5 + hidden;
}

/// `exact`: the float network; where a model came quantized, the quantized one again, which is then computed without
/// rounding. Both share the ids of their values. `program`: nothing to compare float and quantized alone.
[[nodiscard]] host::Result<NetworkComparison> compare_layers(const Graph& exact, const Graph& quantized,
                                                             const Sample& inputs, const TracedRun* program,
                                                             double least_db);

}  // namespace talpa::compiler
