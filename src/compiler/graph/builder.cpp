#include "compiler/graph/builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/graph/fold.h"
#include "compiler/graph/infer.h"
#include "compiler/graph/ops.h"

namespace talpa::compiler {

using host::Result;

Builder::Builder(Graph& graph) : graph_(graph) {
    for (const Value& v : graph.values) names_.insert(v.name);
    for (std::size_t n = 0; n < graph.nodes.size(); ++n)
        for (const auto id : graph.nodes[n].outputs) producer_[id] = n;
}

std::string Builder::unique(const std::string& name) {
    if (names_.insert(name).second) return name;
    for (std::size_t& n = next_number_[name];;) {
        std::string candidate = fmt::format("{}.{}", name, ++n);
        if (names_.insert(candidate).second) return candidate;
    }
}

ValueId Builder::value(Value value) {
    value.name = unique(value.name);
    return graph_.add_value(std::move(value));
}

namespace {

/// Does the operator only pass on stored numbers, so that the result's quantization is the operand's?
bool keeps_quantization(Op op, const Attributes& attributes, const Graph& g, const std::vector<ValueId>& operands) {
    switch (op) {
        case Op::Concat:
            return std::ranges::all_of(operands, [&](ValueId id) {
                return g[id].stored_type() == g[operands[0]].stored_type() &&
                       g[id].quantization == g[operands[0]].quantization;
            });
        case Op::Pad: {
            const auto& pad = std::get<PadAttr>(attributes);
            return pad.mode != PadAttr::Mode::Constant || pad.value == 0;
        }
        case Op::Resize:
            return std::get<ResizeAttr>(attributes).mode == ResizeAttr::Mode::Nearest;
        case Op::MaxPool2d:
        case Op::ReduceMax:
        case Op::ReduceMin:
            return true;
        default:
            return op_facts(op).kind == OpClass::Movement;
    }
}

/// Where a per-channel axis of a constant goes, or -1 if it does not survive.
int moved_axis(Op op, const Attributes& attributes, const Shape& from, int axis, const Shape& to) {
    const auto a = static_cast<std::size_t>(axis);
    switch (op) {
        case Op::Permute: {
            const auto& order = std::get<PermuteAttr>(attributes).order;
            return static_cast<int>(std::ranges::find(order, axis) - order.begin());
        }
        case Op::Reshape: {
            std::int64_t before = 1, seen = 1;
            for (std::size_t d = 0; d < a; ++d) before *= from[d];
            for (std::size_t d = 0; d < to.size(); seen *= to[d], ++d)
                if (seen == before && to[d] == from[a]) return static_cast<int>(d);
            return -1;
        }
        case Op::Slice: {
            const auto& slice = std::get<SliceAttr>(attributes);
            return slice.starts[a] == 0 && slice.steps[a] == 1 && to[a] == from[a] ? axis : -1;
        }
        case Op::Pad:
            return to[a] == from[a] ? axis : -1;
        default:
            return -1;
    }
}

}  // namespace

Value Builder::result_of(Op op, const Attributes& attributes, const std::vector<ValueId>& operands) const {
    Value result;
    if (op == Op::ArgMax) {
        result.type = DType::Int64;
    } else if (keeps_quantization(op, attributes, graph_, operands)) {
        result.type = graph_[operands[0]].type;
        result.quantization = graph_[operands[0]].quantization;
    } else if (op_facts(op).kind == OpClass::Binary && std::ranges::all_of(operands, [&](ValueId id) {
                   return graph_[id].type != DType::Float32 && graph_[id].is_constant();
               })) {
        result.type = graph_[operands[0]].type == DType::Int64 ? DType::Int64 : graph_[operands[1]].type;
    }
    return result;
}

Result<ValueId> Builder::add(Op op, std::vector<ValueId> operands, Attributes attributes, const std::string& name,
                             const Shape& asked) {
    TRY_ASSIGN(Shape shape, infer_shape(graph_, op, attributes, operands, asked));
    Value result = result_of(op, attributes, operands);
    if (result.quantization && !result.quantization->per_tensor()) {
        result.quantization->axis =
            moved_axis(op, attributes, graph_[operands[0]].shape, result.quantization->axis, shape);
        if (result.quantization->axis < 0)
            return host::failure(ErrorCode::NotSupported,
                                 "{} of '{}' mixes the channels of its per-channel quantization", op_name(op),
                                 graph_[operands[0]].name);
    }
    result.shape = std::move(shape);
    result.name = unique(name);
    result.constant = fold(graph_, op, attributes, operands, result);
    if (result.is_constant()) return graph_.add_value(std::move(result));
    if (result.type != DType::Float32 && op != Op::ArgMax && op_facts(op).kind != OpClass::Movement)
        return host::failure(ErrorCode::NotSupported, "{} of {} numbers at run time", op_name(op),
                             dtype_name(result.type));
    const auto id = graph_.add_node(op, std::move(operands), std::move(attributes), std::move(result), source_);
    producer_[id] = graph_.nodes.size() - 1;
    return id;
}

Result<ValueId> Builder::permute(ValueId x, std::vector<int> order, const std::string& name) {
    if (const auto made = producer_.find(x); made != producer_.end()) {
        const Node& node = graph_.nodes[made->second];
        if (node.op == Op::Permute && node.as<PermuteAttr>().order.size() == order.size()) {
            order = composed(node.as<PermuteAttr>().order, order);
            x = node.inputs[0];
        }
    }
    if (is_identity(order) && order.size() == graph_[x].shape.size()) return x;
    return add(Op::Permute, {x}, PermuteAttr{std::move(order)}, name);
}

Result<ValueId> Builder::reshape(ValueId x, const Shape& shape, const std::string& name) {
    if (const auto made = producer_.find(x); made != producer_.end()) {
        const Node& node = graph_.nodes[made->second];
        if (node.op == Op::Reshape) x = node.inputs[0];
    }
    if (graph_[x].shape == shape) return x;
    return add(Op::Reshape, {x}, NoAttr{}, name, shape);
}

Result<ValueId> Builder::requantize(ValueId x, const std::optional<Quantization>& quantization,
                                    const std::string& name) {
    if (graph_[x].quantization == quantization) return x;
    Value result{.name = unique(name), .shape = graph_[x].shape, .quantization = quantization};
    const std::vector<ValueId> operands{x};
    result.constant = fold(graph_, Op::Requantize, NoAttr{}, operands, result);
    if (result.is_constant()) return graph_.add_value(std::move(result));
    const auto id = graph_.add_node(Op::Requantize, operands, NoAttr{}, std::move(result), source_);
    producer_[id] = graph_.nodes.size() - 1;
    return id;
}

std::vector<int> inverse(const std::vector<int>& order) {
    std::vector<int> out(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) out[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
    return out;
}

std::vector<int> composed(const std::vector<int>& first, const std::vector<int>& second) {
    std::vector<int> out(second.size());
    for (std::size_t i = 0; i < second.size(); ++i) out[i] = first[static_cast<std::size_t>(second[i])];
    return out;
}

bool is_identity(const std::vector<int>& order) {
    for (std::size_t i = 0; i < order.size(); ++i)
        if (order[i] != static_cast<int>(i)) return false;
    return true;
}

bool keeps_memory_order(const Shape& shape, const std::vector<int>& order) {
    int last = -1;
    for (const int d : order) {
        if (shape[static_cast<std::size_t>(d)] == 1) continue;
        if (d < last) return false;
        last = d;
    }
    return true;
}

}  // namespace talpa::compiler
