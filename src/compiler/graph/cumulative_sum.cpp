#include "compiler/graph/cumulative_sum.h"

#include <fmt/format.h>

#include "compiler/graph/npu_limits.h"

namespace talpa::compiler {

SumExtent sum_extent(const Graph& graph, const Node& node) {
    const Shape& shape = graph[node.inputs[0]].shape;
    const auto axis = static_cast<std::size_t>(node.as<ReduceAttr>().axes[0]);
    SumExtent e;
    for (std::size_t d = 0; d < shape.size(); ++d) (d < axis ? e.before : d == axis ? e.summed : e.behind) *= shape[d];
    return e;
}

std::optional<std::string> sum_extent_obstacle(const SumExtent& e) {
    constexpr std::int64_t kMostImages = 512;  // each is an operation
    if (e.summed > kMostSummed)
        return fmt::format("it sums {} numbers, a convolution at most {}", e.summed, kMostSummed);
    if (e.behind == 1 && e.before <= kMostInDimension) return std::nullopt;
    if (e.before > kMostImages || e.behind > kMostInDimension)
        return fmt::format("it sums in {} images of {} channels, at most {} of {} are possible", e.before, e.behind,
                           kMostImages, kMostInDimension);
    return std::nullopt;
}

}  // namespace talpa::compiler
