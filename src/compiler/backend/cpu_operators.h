// Nodes that stay on the CPU, as calls of ExecuTorch operators. Channels-last operators are wrapped into permutes, for
// those operators want channels first; quantized operands go through float32. (pte-format, sections 5.3 and 6)
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/host/error.h"
#include "compiler/backend/partition.h"
#include "compiler/backend/program_builder.h"
#include "compiler/graph/graph.h"

namespace talpa::compiler {

/// Why the node has no CPU operator either, or nothing.
[[nodiscard]] std::optional<std::string> cpu_obstacle(const Graph& graph, const Node& node);

/// Appends the calls. `value_of` gives the program's value of a graph value, created at its first use; `beyond` what a
/// spatial operator takes instead of its own, channels first.
[[nodiscard]] host::Result<void> call_cpu_operator(ProgramBuilder& program, const Graph& graph, const Node& node,
                                                   const ChannelsFirst& beyond,
                                                   const std::function<std::int32_t(ValueId)>& value_of);

}  // namespace talpa::compiler
