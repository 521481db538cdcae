// Is a graph what graph.h says it is? Run on what importers make and after every pass: a fault is found where it is
// made, not in the NPU's output.
#pragma once

#include "base/host/error.h"
#include "compiler/graph/graph.h"

namespace talpa::compiler {

/// Every id in range, each value made once and before it is read, shapes as inferred, constants of the right size,
/// quantizations well formed, names unique. The error names node or value.
[[nodiscard]] host::Result<void> check_graph(const Graph& graph);

/// A scale that is finite, positive and normal; zero point inside min to max, these inside the type; as many as there
/// are indices of the axis.
[[nodiscard]] host::Result<void> check_quantization(const Quantization& quantization, const Shape& shape);

}  // namespace talpa::compiler
