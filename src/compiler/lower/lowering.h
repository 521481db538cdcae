// From the quantized part of a graph to block operations of the NPU: which nodes can go there, and what they become.
// (ethos-u65, sections 5, 9.1, 9.2 and 9.7)
#pragma once

#include <optional>
#include <span>
#include <string>

#include "base/host/error.h"
#include "compiler/graph/graph.h"
#include "compiler/lower/network.h"

namespace talpa::compiler {

/// Why the node cannot run on the NPU, as half a sentence ("its stride is 5, at most 3 is possible"); nothing if it
/// can.
[[nodiscard]] std::optional<std::string> npu_obstacle(const Graph& graph, const Node& node);

/// Lowers the nodes (indices in execution order, none with an obstacle) to one network. `inputs` and `outputs` are the
/// values that cross its border, in the order that the network's have; a constant is not an input.
[[nodiscard]] host::Result<Network> lower(const Graph& graph, std::span<const std::uint32_t> nodes,
                                          std::span<const ValueId> inputs, std::span<const ValueId> outputs);

}  // namespace talpa::compiler
