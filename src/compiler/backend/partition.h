// Which nodes run where, and in which order: parts of the graph for the NPU, as few as the CPU nodes between them
// allow.
#pragma once

#include <string>
#include <vector>

#include "compiler/graph/graph.h"

namespace talpa::compiler {

struct Part {
    bool on_npu = false;
    std::vector<std::uint32_t> nodes;      ///< in execution order
    std::vector<ValueId> inputs, outputs;  ///< across its border; constants are no inputs
};

struct Partition {
    std::vector<Part> parts;           ///< in execution order; CPU parts have any number of nodes
    std::vector<std::string> reasons;  ///< by node: why it is not on the NPU, empty if it is
};

[[nodiscard]] Partition partition(const Graph& graph);

}  // namespace talpa::compiler
