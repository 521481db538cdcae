// Which nodes run where, and in which order: parts of the graph for the NPU, as few as the CPU nodes between them
// allow.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compiler/graph/graph.h"

namespace talpa::compiler {

struct Part {
    bool on_npu = false;
    std::vector<std::uint32_t> nodes;      ///< in execution order
    std::vector<ValueId> inputs, outputs;  ///< across its border; constants are no inputs
};

/// A CPU operator wants its channels first. Where a permute from that order stands in front of it, or one to it behind,
/// for it alone, it reads or writes what lies beyond.
struct ChannelsFirst {
    ValueId from = kNoValue, to = kNoValue;  ///< in the place of its first input, of its output
};

struct Partition {
    std::vector<Part> parts;                                ///< in execution order; CPU parts have any number of nodes
    std::vector<std::string> reasons;                       ///< by node: why it is not on the NPU, empty if it is
    std::map<std::uint32_t, ChannelsFirst> channels_first;  ///< by node of the CPU
    std::vector<bool> absorbed;  ///< by node: a permute that is part of such an operator, and in no delegate
};

[[nodiscard]] Partition partition(const Graph& graph);

}  // namespace talpa::compiler
