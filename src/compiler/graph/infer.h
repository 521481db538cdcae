// The shape that an operator's result has, from its operands and attributes. Importers build with it, and check.h holds
// every graph against it.
#pragma once

#include <span>

#include "base/host/error.h"
#include "compiler/graph/graph.h"

namespace talpa::compiler {

/// NumPy's broadcasting; an error names both shapes.
[[nodiscard]] host::Result<Shape> broadcast(const Shape& a, const Shape& b);

/// "[1, 3, 224, 224]"
[[nodiscard]] std::string shape_text(const Shape& shape);

/// `asked`: the result's shape where the operator leaves it open (Reshape, Expand, Resize), else empty.
/// Errors say which rule is broken: InvalidArgument.
[[nodiscard]] host::Result<Shape> infer_shape(const Graph& graph, Op op, const Attributes& attributes,
                                              std::span<const ValueId> operands, const Shape& asked = {});

/// Row-major strides in elements.
[[nodiscard]] std::vector<std::int64_t> row_major_strides(const Shape& shape);

}  // namespace talpa::compiler
