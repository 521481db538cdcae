// uint8 networks become int8 ones: q - 128 with zero point - 128 stands for the same reals (model-formats,
// section 3.3). What comes in and goes out stays as the model's users know it, behind a Requantize.
#include <algorithm>

#include "compiler/passes/passes.h"

namespace talpa::compiler {
namespace {

bool is_unsigned(const Value& v) {
    return v.quantization && v.quantization->type == DType::UInt8;
}

Quantization shifted(Quantization q) {
    q.type = DType::Int8;
    q.min -= 128;
    q.max -= 128;
    for (auto& z : q.zero_points) z -= 128;
    return q;
}

}  // namespace

void signed_integers(Graph& g) {
    std::vector<ValueId> inner(g.values.size(), kNoValue);  // what inputs are inside
    std::vector<Node> first, last;
    for (const auto id : g.inputs) {
        if (!is_unsigned(g[id])) continue;
        Value v{.name = g[id].name + ".signed", .shape = g[id].shape, .quantization = shifted(*g[id].quantization)};
        inner[id] = g.add_value(std::move(v));
        first.push_back({Op::Requantize, {id}, {inner[id]}, NoAttr{}, {.node = g[id].name}});
    }
    for (Node& node : g.nodes)
        for (auto& id : node.inputs)
            if (id != kNoValue && id < inner.size() && inner[id] != kNoValue) id = inner[id];
    std::vector<bool> is_input(g.values.size());
    for (const auto id : g.inputs) is_input[id] = true;
    for (auto& id : g.outputs) {
        if (!is_unsigned(g[id]) || is_input[id]) continue;
        Value v{.name = g[id].name, .shape = g[id].shape, .quantization = g[id].quantization};
        g[id].name += ".signed";
        const auto out = g.add_value(std::move(v));
        is_input.push_back(true);  // it stays unsigned
        last.push_back({Op::Requantize, {id}, {out}, NoAttr{}, {.node = g[out].name}});
        for (auto& other : g.outputs)
            if (other == id && &other != &id) other = out;
        id = out;
    }
    for (ValueId id = 0; id < g.values.size(); ++id) {
        Value& v = g[id];
        if (!is_unsigned(v) || is_input[id]) continue;
        v.quantization = shifted(*v.quantization);
        if (!v.constant) continue;
        Bytes bytes = *v.constant;
        for (auto& b : bytes) b ^= 0x80;
        v.constant = std::make_shared<const Bytes>(std::move(bytes));
    }
    g.nodes.insert(g.nodes.begin(), first.begin(), first.end());
    g.nodes.insert(g.nodes.end(), last.begin(), last.end());
}

}  // namespace talpa::compiler
