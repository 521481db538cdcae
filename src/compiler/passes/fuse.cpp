// Clamps and quantizations join the operators before them; padding joins the convolution behind it.
#include <algorithm>
#include <cmath>

#include "compiler/graph/ops.h"
#include "compiler/passes/passes.h"

namespace talpa::compiler {
namespace {

bool is_output(const Graph& g, ValueId id) {
    return std::ranges::find(g.outputs, id) != g.outputs.end();
}

/// The node that makes `id`, if `id` has no other purpose than its one reader.
Node* only_producer(Graph& g, const Uses& uses, ValueId id) {
    if (uses.producer[id] < 0 || uses.readers[id].size() != 1 || is_output(g, id)) return nullptr;
    return &g.nodes[static_cast<std::size_t>(uses.producer[id])];
}

/// Would every window of the convolution still hold something of its input? One of padding alone the NPU has no form
/// of; the padding then stays an operator of its own.
bool every_window_sees(const ConvAttr& conv, const Edges& edges, const Shape& in, const Shape& weight,
                       const Shape& out) {
    const std::int64_t before[] = {edges.top, edges.left};
    for (const std::size_t d : {0u, 1u}) {
        const std::int64_t reach = (weight[d + 1] - 1) * conv.dilation[d] + 1;
        if (before[d] >= reach || (out[d + 1] - 1) * conv.stride[d] - before[d] >= in[d + 1]) return false;
    }
    return true;
}

double bounded(double v, const Clamp& by) {
    return std::min(std::max(v, by.min), by.max);
}

}  // namespace

void fuse_clamps(Graph& g) {
    Uses uses = find_uses(g);
    for (Node& node : g.nodes) {
        if (node.op != Op::ClampOp) continue;
        const auto in = node.inputs[0], out = node.outputs[0];
        Node* before = only_producer(g, uses, in);
        if (before == nullptr) continue;
        const Clamp& second = node.as<UnaryAttr>().clamp;
        // Rounding is monotone: clamping before or after the same quantization gives the same integers.
        if (g[in].quantization && g[in].quantization != g[out].quantization) continue;
        if (!g[in].quantization && g[out].quantization) continue;
        Clamp* first = before->op == Op::ClampOp ? &before->as<UnaryAttr>().clamp : fused_clamp(*before);
        if (first == nullptr || std::isnan(second.min) || std::isnan(second.max)) continue;
        *first = {bounded(first->min, second), bounded(first->max, second)};
        g[in].name.swap(g[out].name);  // the joined result goes by the operator's name
        before->outputs = {out};
        uses.producer[out] = uses.producer[in];
        node.outputs.clear();
    }
    std::erase_if(g.nodes, [](const Node& n) { return n.outputs.empty(); });
}

void fuse_quantizations(Graph& g) {
    const Uses uses = find_uses(g);
    for (Node& node : g.nodes) {
        if (node.op != Op::Requantize) continue;
        const auto in = node.inputs[0], out = node.outputs[0];
        if (g[in].quantization || !g[out].quantization || g[in].type != DType::Float32) continue;
        Node* before = only_producer(g, uses, in);
        if (before == nullptr || before->op == Op::Requantize) continue;
        g[in].name.swap(g[out].name);
        before->outputs = {out};
        node.outputs.clear();
    }
    std::erase_if(g.nodes, [](const Node& n) { return n.outputs.empty(); });
}

void fold_pads(Graph& g) {
    const Uses uses = find_uses(g);
    for (Node& node : g.nodes) {
        if (node.op != Op::Conv2d || uses.producer[node.inputs[0]] < 0) continue;
        const Node& before = g.nodes[static_cast<std::size_t>(uses.producer[node.inputs[0]])];
        if (before.op != Op::Pad) continue;
        const PadAttr& pad = before.as<PadAttr>();
        const Value &from = g[before.inputs[0]], &to = g[before.outputs[0]];
        const bool spatial = pad.before.size() == 4 && pad.before[0] == 0 && pad.before[3] == 0 && pad.after[0] == 0 &&
                             pad.after[3] == 0;
        if (pad.mode != PadAttr::Mode::Constant || pad.value != 0 || !spatial || from.quantization != to.quantization)
            continue;
        Edges edges = node.as<ConvAttr>().padding;
        edges.top += pad.before[1];
        edges.left += pad.before[2];
        edges.bottom += pad.after[1];
        edges.right += pad.after[2];
        if (!every_window_sees(node.as<ConvAttr>(), edges, from.shape, g[node.inputs[1]].shape,
                               g[node.outputs[0]].shape))
            continue;
        node.as<ConvAttr>().padding = edges;
        node.inputs[0] = before.inputs[0];
    }
    remove_dead(g);
}

void remove_dead(Graph& g) {
    std::vector<bool> needed(g.values.size());
    for (const auto id : g.outputs) needed[id] = true;
    for (std::size_t n = g.nodes.size(); n-- > 0;) {
        Node& node = g.nodes[n];
        if (std::ranges::none_of(node.outputs, [&](ValueId id) { return needed[id]; })) {
            node.outputs.clear();
            continue;
        }
        for (const auto id : node.inputs)
            if (id != kNoValue) needed[id] = true;
    }
    std::erase_if(g.nodes, [](const Node& node) { return node.outputs.empty(); });
    for (const auto id : g.inputs) needed[id] = true;
    for (const Node& node : g.nodes)
        for (const auto id : node.outputs) needed[id] = true;
    std::vector<ValueId> moved(g.values.size(), kNoValue);
    std::vector<Value> kept;
    for (ValueId id = 0; id < g.values.size(); ++id) {
        if (!needed[id]) continue;
        moved[id] = static_cast<ValueId>(kept.size());
        kept.push_back(std::move(g.values[id]));
    }
    g.values = std::move(kept);
    const auto rename = [&](std::vector<ValueId>& ids) {
        for (auto& id : ids)
            if (id != kNoValue) id = moved[id];
    };
    for (Node& node : g.nodes) {
        rename(node.inputs);
        rename(node.outputs);
    }
    rename(g.inputs);
    rename(g.outputs);
}

}  // namespace talpa::compiler
