#include "compiler/quantize/policy.h"

#include "compiler/graph/cumulative_sum.h"
#include "compiler/graph/ops.h"

namespace talpa::compiler {

ResultRule result_rule(const Graph& graph, const Node& node, int bits) {
    switch (node.op) {
        case Op::MaxPool2d:
        case Op::AvgPool2d:
        case Op::ReduceMax:
        case Op::ReduceMin:
        case Op::Concat:
        case Op::Slice:
        case Op::Pad:
        case Op::Reshape:
        case Op::Permute:
        case Op::Expand:
        case Op::Resize:
        case Op::Gather:
            return ResultRule::Same;
        case Op::Softmax:
        case Op::Sigmoid:
        case Op::HardSigmoid:
            return ResultRule::Unit;
        case Op::Tanh:
            return ResultRule::Signed;
        case Op::Div:
        case Op::Pow:
        case Op::ArgMax:
        case Op::LogSoftmax:
        case Op::LayerNorm:
        case Op::GroupNorm:
        case Op::BatchNorm:
            return ResultRule::Float;
        case Op::CumSum:
            // One rounding of an exact sum, where the NPU can; sums on the CPU stay exact.
            return bits == 8 && !sum_extent_obstacle(sum_extent(graph, node)) ? ResultRule::Own : ResultRule::Float;
        default:
            return ResultRule::Own;
    }
}

bool is_weight(const Node& node, std::size_t index) {
    return has_weights(node.op) && index == 1;
}
bool is_bias(const Node& node, std::size_t index) {
    return has_weights(node.op) && index == 2;
}
bool is_activation(const Graph& graph, const Node& node, std::size_t index) {
    const auto id = node.inputs[index];
    return id != kNoValue && graph[id].type == DType::Float32 && !is_bias(node, index) &&
           !(is_weight(node, index) && graph[id].is_constant());
}

}  // namespace talpa::compiler
