// Weights and scale records of convolutions and fully connected layers from a graph's constants. (ethos-u65, sections
// 5.2, 5.3 and 9.7)
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compiler/graph/graph.h"
#include "compiler/lower/network.h"

namespace talpa::compiler {

/// Why the constants cannot be used, or nothing. `weight`'s dimension 0 is the output channel.
[[nodiscard]] std::optional<std::string> filter_obstacle(const Graph& graph, ValueId input, ValueId weight,
                                                         ValueId bias, ValueId result);

/// All weights with their zero points taken off, in the order of the constant.
[[nodiscard]] std::vector<std::int16_t> plain_weights(const Value& weight);

/// One record an output channel.
[[nodiscard]] std::vector<ScaleRecord> scale_records(const Graph& graph, ValueId input, ValueId weight, ValueId bias,
                                                     ValueId result, bool fully_connected);

/// The hardware's accumulators must not overflow: sum of |weight| of a filter (section 5.2).
inline constexpr std::int64_t kMostWeightSum = 127 * 65536;

}  // namespace talpa::compiler
