#include "compiler/backend/partition.h"

#include <algorithm>
#include <map>
#include <set>

#include "compiler/graph/ops.h"
#include "compiler/lower/lowering.h"

namespace talpa::compiler {
namespace {

bool is_permute(const Graph& graph, std::int64_t node, const std::vector<int>& order) {
    if (node < 0) return false;
    const Node& n = graph.nodes[static_cast<std::size_t>(node)];
    if (n.op != Op::Permute || n.as<PermuteAttr>().order != order) return false;
    const Value &in = graph[n.inputs[0]], &out = graph[n.outputs[0]];
    return !in.is_constant() && in.quantization == out.quantization && in.stored_type() == out.stored_type();
}

// The permutes around what the CPU computes become its own.
void absorb_permutes(const Graph& graph, const Uses& uses, std::vector<bool>& npu, Partition& p) {
    const auto only_for = [&](ValueId v, std::uint32_t node) {
        return uses.readers[v] == std::vector{node} && std::count(graph.outputs.begin(), graph.outputs.end(), v) == 0;
    };
    for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
        const Node& node = graph.nodes[n];
        if (npu[n] || op_facts(node.op).kind != OpClass::Spatial) continue;
        ChannelsFirst beyond;
        const ValueId in = node.inputs[0], out = node.outputs[0];
        const std::int64_t before = uses.producer[in];
        if (is_permute(graph, before, {0, 2, 3, 1}) && only_for(in, n)) {
            const auto permute = static_cast<std::uint32_t>(before);
            beyond.from = graph.nodes[permute].inputs[0];
            npu[permute] = false;
            p.absorbed[permute] = true;
        }
        if (uses.readers[out].size() == 1 && is_permute(graph, uses.readers[out][0], {0, 3, 1, 2}) &&
            only_for(out, uses.readers[out][0])) {
            const std::uint32_t permute = uses.readers[out][0];
            beyond.to = graph.nodes[permute].outputs[0];
            npu[permute] = false;
            p.absorbed[permute] = true;
        }
        if (beyond.from != kNoValue || beyond.to != kNoValue) p.channels_first.emplace(n, beyond);
    }
}

}  // namespace

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
    p.absorbed.resize(graph.nodes.size());
    absorb_permutes(graph, uses, npu, p);
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
