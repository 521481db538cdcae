#include "compiler/backend/partition.h"

#include <algorithm>
#include <map>
#include <set>

#include "compiler/lower/lowering.h"

namespace talpa::compiler {
Partition partition(const Graph& graph) {
    Partition p;
    p.reasons.resize(graph.nodes.size());
    std::vector<bool> npu(graph.nodes.size());
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        const auto why = npu_obstacle(graph, graph.nodes[i]);
        npu[i] = !why;
        if (why) p.reasons[i] = *why;
    }
    const Uses uses = find_uses(graph);
    // Phases: a node is one later than what it reads on the other side. CPU phases are even, NPU phases odd.
    const auto phases = [&] {
        std::vector<std::uint32_t> phase(graph.nodes.size());
        for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
            std::uint32_t at = npu[i] ? 1 : 0;
            for (const ValueId v : graph.nodes[i].inputs) {
                if (v == kNoValue || uses.producer[v] < 0) continue;
                const auto from = static_cast<std::size_t>(uses.producer[v]);
                at = std::max(at, phase[from] + (npu[from] != npu[i] ? 1 : 0));
            }
            phase[i] = at;
        }
        return phase;
    };
    const std::vector<std::uint32_t> phase = phases();
    std::map<std::uint32_t, Part> parts;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        Part& part = parts[phase[i]];
        part.on_npu = npu[i];
        part.nodes.push_back(static_cast<std::uint32_t>(i));
    }
    for (auto& [at, part] : parts) {
        const std::set<std::uint32_t> inside(part.nodes.begin(), part.nodes.end());
        std::set<ValueId> seen;
        for (const std::uint32_t n : part.nodes) {
            for (const ValueId v : graph.nodes[n].inputs) {
                if (v == kNoValue || graph[v].is_constant()) continue;
                if (uses.producer[v] >= 0 && inside.contains(static_cast<std::uint32_t>(uses.producer[v]))) continue;
                if (seen.insert(v).second) part.inputs.push_back(v);
            }
            for (const ValueId v : graph.nodes[n].outputs) {
                bool leaves = std::count(graph.outputs.begin(), graph.outputs.end(), v) > 0;
                for (const std::uint32_t reader : uses.readers[v]) leaves = leaves || !inside.contains(reader);
                if (leaves) part.outputs.push_back(v);
            }
        }
        p.parts.push_back(std::move(part));
    }
    return p;
}

}  // namespace talpa::compiler
