// A graph as text, one line a node: what `talpa compile --dump-after` prints and what tests compare.
#pragma once

#include <string>

#include "compiler/graph/graph.h"

namespace talpa::compiler {

/// "int8[1, 112, 112, 32] q(0.0235, -128)"
[[nodiscard]] std::string type_text(const Value& value);

/// "conv2d stride=2,2 pad=0,0,1,1 clamp=0..6"
[[nodiscard]] std::string operation_text(const Node& node);

[[nodiscard]] std::string dump(const Graph& graph);

}  // namespace talpa::compiler
