#include "cli/debug_database.h"

#include <fmt/format.h>

#include <map>

#include "compiler/graph/ops.h"
#include "inspect/network.h"

namespace talpa::cli {
namespace {

using compiler::Graph;
using inspect::DebugMap;

std::string name_of(const Graph& graph, const compiler::Node& node) {
    const auto& s = node.source;
    const std::string& own = s.node.empty() ? graph[node.outputs[0]].name : s.node;
    return s.module.empty() || s.module == own ? own : fmt::format("{} ({})", own, s.module);
}

/// Height, width and channels of a value that is channels-last; the innermost dimensions of any other.
void set_shape(DebugMap::Operator& o, const compiler::Shape& shape) {
    const auto at = [&](std::size_t from_end) {
        return shape.size() < from_end ? 1u : static_cast<std::uint32_t>(shape[shape.size() - from_end]);
    };
    o.depth = at(1);
    o.width = at(2);
    o.height = at(3);
}

DebugMap::Operator source_operator(const Graph& graph, std::uint32_t n) {
    const compiler::Node& node = graph.nodes[n];
    DebugMap::Operator o{.id = n + 1, .key = n, .name = compiler::op_name(node.op)};
    set_shape(o, graph[node.outputs[0]].shape);
    const auto kernel = [&](std::int64_t height, std::int64_t width) {
        o.kernel_height = static_cast<std::uint32_t>(height);
        o.kernel_width = static_cast<std::uint32_t>(width);
    };
    if (std::holds_alternative<compiler::ConvAttr>(node.attributes)) {
        const auto& weight = graph[node.inputs[1]].shape;  // O, KH, KW, I
        kernel(weight[1], weight[2]);
    }
    if (const auto* pool = std::get_if<compiler::PoolAttr>(&node.attributes)) kernel(pool->kernel[0], pool->kernel[1]);
    return o;
}

}  // namespace

DebugMap debug_map_of(const std::string& model, const Graph& graph, const compiler::CompileReport& compiled,
                      const inspect::Report& program) {
    DebugMap map;
    map.model = model;
    for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) map.source.push_back(source_operator(graph, n));
    std::map<std::pair<std::uint32_t, std::uint32_t>, const compiler::OperationOrigin*> origins;
    for (const auto& o : compiled.origins) origins[{o.delegate, o.offset_bytes}] = &o;
    // Ids of a step's rows, by delegate and step. Scheduled ids follow the optimised ones, so that no number is both.
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> rows;
    for (const auto& d : program.main_method().delegates) {
        if (!d.network) continue;
        map.streams.push_back(d.index + 1);
        for (std::size_t i = 0; i < d.network->operations.size(); ++i) {
            const npu::Operation& op = d.network->operations[i];
            const auto origin = origins.find({d.index, op.offset_bytes});
            if (!npu::is_kernel(op.kind) || origin == origins.end()) continue;
            const auto& o = *origin->second;
            const auto [row, added] = rows.try_emplace({o.delegate, o.step}, map.optimised.size());
            const auto& cost = d.network->cost.operations[i];
            if (added) {
                DebugMap::Operator step{.id = static_cast<std::uint32_t>(row->second + 1),
                                        .key = o.node + 1,
                                        .name = npu::op_kind_name(op.kind),
                                        .kernel_width = op.kernel.width,
                                        .kernel_height = op.kernel.height,
                                        .width = op.ofm.width,
                                        .height = 0,
                                        .depth = op.ofm.depth};
                map.optimised.push_back(std::move(step));
                DebugMap::Performance p;
                p.optimised = static_cast<std::uint32_t>(row->second + 1);
                p.source = o.node + 1;
                p.kind = inspect::operation_title(op);
                p.name = name_of(graph, graph.nodes[o.node]);
                p.staging_bytes = d.fast_scratch_bytes;
                map.performance.push_back(std::move(p));
            }
            map.optimised[row->second].height += op.ofm.height;  // of all stripes
            DebugMap::Performance& p = map.performance[row->second];
            p.cycles += cost.end - cost.start;
            p.npu_cycles += cost.cost.npu_cycles;
            p.macs += cost.cost.macs;
            p.sram_cycles += cost.cost.memory_cycles[npu_model::index(npu_model::MemoryArea::Sram)];
            p.dram_cycles += cost.cost.memory_cycles[npu_model::index(npu_model::MemoryArea::Dram)];
            map.queue.push_back({op.offset_bytes, d.index + 1, static_cast<std::uint32_t>(row->second + 1), 0});
        }
    }
    const auto first = static_cast<std::uint32_t>(map.optimised.size());
    for (auto& p : map.performance) p.scheduled = first + p.optimised;
    for (auto& c : map.queue) c.scheduled = first + c.optimised;
    return map;
}

}  // namespace talpa::cli
