// Channels-first networks flatten C x H x W in front of a fully connected layer. Here the elements come as H x W x C,
// so the layer's columns change places instead of the activations.
#include "compiler/graph/builder.h"
#include "compiler/graph/ops.h"
#include "compiler/passes/passes.h"

namespace talpa::compiler {
namespace {

using host::Result;

const Node* producer_of(const Graph& g, const Uses& uses, ValueId id, Op op) {
    if (id >= uses.producer.size() || uses.producer[id] < 0) return nullptr;
    const Node& node = g.nodes[static_cast<std::size_t>(uses.producer[id])];
    return node.op == op ? &node : nullptr;
}

struct Edit {
    std::size_t node;
    ValueId from;  ///< what the permute reads
    std::vector<int> order;
};

Result<void> apply(Graph& g, const Edit& edit) {
    Builder b(g);
    const Node layer = g.nodes[edit.node];
    const Shape permuted = [&] {
        Shape s;
        for (const int d : edit.order) s.push_back(g[edit.from].shape[static_cast<std::size_t>(d)]);
        return s;
    }();
    const std::string name = g[layer.inputs[1]].name;
    const Shape flat = g[layer.inputs[1]].shape;
    // Columns as the permuted dimensions, put into the order before the permute; the row stays in front.
    Shape split = permuted;
    split[0] = flat[0];
    TRY_ASSIGN(ValueId weight, b.add(Op::Reshape, {layer.inputs[1]}, NoAttr{}, name + ".split", split));
    TRY_ASSIGN(weight, b.permute(weight, inverse(edit.order), name + ".reordered"));
    TRY_ASSIGN(weight, b.add(Op::Reshape, {weight}, NoAttr{}, name + ".hwc", flat));
    // The flattening moves in front of the layer and reads past the permute.
    const Shape rows = g[layer.inputs[0]].shape;
    Value flattened{.name = g[edit.from].name + ".flat",
                    .shape = rows,
                    .type = g[edit.from].type,
                    .quantization = g[edit.from].quantization};
    const auto x = b.value(std::move(flattened));
    g.nodes[edit.node].inputs[0] = x;
    g.nodes[edit.node].inputs[1] = weight;
    g.nodes.insert(g.nodes.begin() + static_cast<std::ptrdiff_t>(edit.node),
                   Node{Op::Reshape, {edit.from}, {x}, NoAttr{}, layer.source});
    return {};
}

}  // namespace

Result<void> fold_flatten(Graph& g) {
    for (std::size_t n = 0; n < g.nodes.size(); ++n) {
        if (g.nodes[n].op != Op::FullyConnected) continue;
        const Uses uses = find_uses(g);
        const Node* flatten = producer_of(g, uses, g.nodes[n].inputs[0], Op::Reshape);
        if (flatten == nullptr) continue;
        const Node* permute = producer_of(g, uses, flatten->inputs[0], Op::Permute);
        if (permute == nullptr) continue;
        const auto& order = permute->as<PermuteAttr>().order;
        const Shape& rows = g[flatten->outputs[0]].shape;
        // Only what keeps the batch in front and joins everything else.
        if (order.empty() || order[0] != 0 || rows.size() != 2 || rows[0] != g[permute->inputs[0]].shape[0]) continue;
        if (g[permute->inputs[0]].quantization != g[flatten->outputs[0]].quantization) continue;
        if (!g[g.nodes[n].inputs[1]].is_constant()) continue;
        TRY(apply(g, {n, permute->inputs[0], order}));
        ++n;
    }
    remove_dead(g);
    return {};
}

}  // namespace talpa::compiler
