// How a cumulative sum lies in memory, and which have a form on the NPU: a depthwise convolution with ones over as many
// rows as there are. Lowering asks, and quantization before it, which leaves the others in floats. (ethos-u65, sections
// 4.3 and 9.1)
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "compiler/graph/graph.h"

namespace talpa::compiler {

/// What is summed are kernel rows or columns.
inline constexpr std::int64_t kMostSummed = 64;

/// Elements of the dimensions before the one that is summed along, of it, and of those behind it.
struct SumExtent {
    std::int64_t before = 1, summed = 1, behind = 1;
};
[[nodiscard]] SumExtent sum_extent(const Graph& graph, const Node& node);

/// Why the NPU has no form of the sum, whatever its numbers are.
[[nodiscard]] std::optional<std::string> sum_extent_obstacle(const SumExtent& extent);

}  // namespace talpa::compiler
