#include "compiler/passes/rebuild.h"

#include <fmt/format.h>

#include "compiler/graph/ops.h"

namespace talpa::compiler {

using host::Result;

Rebuild::Rebuild(const Graph& old) : old_(old), build_(made_) {
    made_.name = old.name;
    made_.arithmetic = old.arithmetic;
}

Result<Graph> Rebuild::run() {
    for (const auto id : old_.inputs) {
        const auto made = build_.value(old_[id]);
        made_.inputs.push_back(made);
        carried(id, made);
    }
    for (ValueId id = 0; id < old_.values.size(); ++id)
        if (old_[id].is_constant()) carried(id, build_.value(old_[id]));
    for (const Node& n : old_.nodes) {
        build_.at(n.source);
        TRY(host::with_context(node(n), fmt::format("{} '{}'", op_name(n.op), n.source.node)));
    }
    for (const auto id : old_.outputs) {
        TRY_ASSIGN(const auto made, plain(id));
        made_.outputs.push_back(made);
    }
    return std::move(made_);
}

Result<ValueId> Rebuild::add_like(const Node& node, std::vector<ValueId> operands, Attributes attributes,
                                  const Shape& asked) {
    const Value& result = old_[node.outputs[0]];
    if (node.op == Op::Requantize) return build_.requantize(operands[0], result.quantization, result.name);
    TRY_ASSIGN(const auto id, build_.add(node.op, std::move(operands), std::move(attributes), result.name, asked));
    if (!made_[id].is_constant()) {
        made_[id].type = result.type;
        made_[id].quantization = result.quantization;
    }
    return id;
}

Result<ValueId> Rebuild::copy(const Node& node) {
    std::vector<ValueId> operands;
    for (const auto id : node.inputs) {
        if (id == kNoValue) {
            operands.push_back(kNoValue);
            continue;
        }
        TRY_ASSIGN(const auto made, plain(id));
        operands.push_back(made);
    }
    return add_like(node, std::move(operands), node.attributes, old_[node.outputs[0]].shape);
}

}  // namespace talpa::compiler
