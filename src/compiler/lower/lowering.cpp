#include "compiler/lower/lowering.h"

#include <fmt/format.h>

#include "compiler/graph/npu_limits.h"
#include "compiler/graph/ops.h"
#include "compiler/lower/lowerer.h"

namespace talpa::compiler {
namespace {

struct Row {
    Op op;
    LowerFunction lower;
    ObstacleFunction obstacle;
};
constexpr Row kRows[] = {
    {Op::Conv2d, lower_convolution, convolution_obstacle},
    {Op::ConvTranspose2d, lower_transposed_convolution, transposed_convolution_obstacle},
    {Op::FullyConnected, lower_fully_connected, fully_connected_obstacle},
    {Op::MaxPool2d, lower_pool, pool_obstacle},
    {Op::AvgPool2d, lower_pool, pool_obstacle},
    {Op::Mean, lower_reduction, reduction_obstacle},
    {Op::Sum, lower_reduction, reduction_obstacle},
    {Op::CumSum, lower_cumulative_sum, cumulative_sum_obstacle},
    {Op::ReduceMax, lower_reduction, reduction_obstacle},
    {Op::ReduceMin, lower_reduction, reduction_obstacle},
    {Op::Add, lower_add, no_obstacle},
    {Op::Sub, lower_add, no_obstacle},
    {Op::Mul, lower_mul, no_obstacle},
    {Op::MatMul, lower_matmul, matmul_obstacle},
    {Op::Minimum, lower_min_max, min_max_obstacle},
    {Op::Maximum, lower_min_max, min_max_obstacle},
    {Op::ClampOp, lower_unary, unary_obstacle},
    {Op::LeakyRelu, lower_unary, unary_obstacle},
    {Op::Prelu, lower_prelu, prelu_obstacle},
    {Op::Elu, lower_unary, unary_obstacle},
    {Op::Sigmoid, lower_unary, unary_obstacle},
    {Op::Tanh, lower_unary, unary_obstacle},
    {Op::HardSigmoid, lower_unary, unary_obstacle},
    {Op::HardSwish, lower_unary, unary_obstacle},
    {Op::Silu, lower_unary, unary_obstacle},
    {Op::Gelu, lower_unary, unary_obstacle},
    {Op::Exp, lower_unary, unary_obstacle},
    {Op::Log, lower_unary, unary_obstacle},
    {Op::Sqrt, lower_unary, unary_obstacle},
    {Op::Rsqrt, lower_unary, unary_obstacle},
    {Op::Abs, lower_unary, unary_obstacle},
    {Op::Neg, lower_unary, unary_obstacle},
    {Op::Reciprocal, lower_unary, unary_obstacle},
    {Op::Square, lower_unary, unary_obstacle},
    {Op::Softplus, lower_unary, unary_obstacle},
    {Op::Mish, lower_unary, unary_obstacle},
    {Op::Sin, lower_unary, unary_obstacle},
    {Op::Cos, lower_unary, unary_obstacle},
    {Op::Erf, lower_unary, unary_obstacle},
    {Op::Floor, lower_unary, unary_obstacle},
    {Op::Ceil, lower_unary, unary_obstacle},
    {Op::Round, lower_unary, unary_obstacle},
    {Op::Sign, lower_unary, unary_obstacle},
    {Op::Softmax, lower_softmax, softmax_obstacle},
    {Op::Concat, lower_concat, movement_obstacle},
    {Op::Slice, lower_slice, movement_obstacle},
    {Op::Pad, lower_pad, pad_obstacle},
    {Op::Reshape, lower_reshape, movement_obstacle},
    {Op::Permute, lower_permute, movement_obstacle},
    {Op::Expand, lower_expand, movement_obstacle},
    {Op::Resize, lower_resize, resize_obstacle},
    {Op::Requantize, lower_requantize, requantize_obstacle},
};

const Row* row_of(Op op) {
    for (const Row& r : kRows)
        if (r.op == op) return &r;
    return nullptr;
}

constexpr std::int64_t kMostPictures = 512;  // each is an operation or several

// What reached no obstacle and still came out larger than the registers: rows of a matrix, say.
host::Result<void> check_sizes(const Network& network, std::size_t first_step) {
    for (std::size_t i = first_step; i < network.steps.size(); ++i) {
        const Step& s = network.steps[i];
        if (s.op.kind == npu::OpKind::Dma) continue;
        for (const View* v : {&s.ifm, &s.ifm2, &s.ofm})
            if (v->tensor != kNoTensor &&
                (v->height > kMostInDimension || v->width > kMostInDimension || v->depth > kMostInDimension))
                return host::failure(ErrorCode::NotSupported,
                                     "a map of {} x {} x {} would be needed, at most {} each is possible", v->height,
                                     v->width, v->depth, kMostInDimension);
    }
    return {};
}

// What holds for every feature map.
std::optional<std::string> map_obstacle(const Value& v) {
    if (!v.quantization) return fmt::format("'{}' is {}, not quantized", v.name, dtype_name(v.type));
    const DType t = v.stored_type();
    if (t != DType::Int8 && t != DType::UInt8 && t != DType::Int16)
        return fmt::format("'{}' is stored as {}, only int8, uint8 and int16 are possible", v.name, dtype_name(t));
    if (!v.quantization->per_tensor() || v.quantization->scales.size() != 1)
        return fmt::format("'{}' is quantized per channel", v.name);
    if (v.shape.size() > 6) return fmt::format("'{}' has {} dimensions", v.name, v.shape.size());
    if (element_count(v.shape) == 0) return fmt::format("'{}' is empty", v.name);
    // Places in a program are 31-bit numbers.
    if (element_count(v.shape) > INT32_MAX / static_cast<std::int64_t>(dtype_size(t)))
        return fmt::format("'{}' has {} elements", v.name, element_count(v.shape));
    return std::nullopt;
}

}  // namespace

std::optional<std::string> npu_obstacle(const Graph& graph, const Node& node) {
    const Row* row = row_of(node.op);
    if (row == nullptr) return fmt::format("{} has no form on the NPU", op_name(node.op));
    if (node.outputs.size() != 1) return "it has several results";
    if (auto why = map_obstacle(graph[node.outputs[0]])) return why;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (has_weights(node.op) && i > 0) break;
        if (node.inputs[i] == kNoValue) continue;
        if (auto why = map_obstacle(graph[node.inputs[i]])) return why;
    }
    // Spatial operators have four dimensions, large ones no place in 16-bit registers.
    const Value& first = graph[node.inputs[0]];
    if ((node.op == Op::Conv2d || node.op == Op::ConvTranspose2d || node.op == Op::MaxPool2d ||
         node.op == Op::AvgPool2d || node.op == Op::Resize)) {
        if (first.shape.size() != 4)
            return fmt::format("'{}' has {} dimensions, not 4", first.name, first.shape.size());
        for (const Value* v : {&first, &graph[node.outputs[0]]})
            for (std::size_t d = 1; d < 4; ++d)
                if (v->shape[d] > kMostInDimension)
                    return fmt::format("'{}' has a dimension of {}", v->name, v->shape[d]);
        if (first.shape[0] > kMostPictures) return fmt::format("'{}' has a batch of {}", first.name, first.shape[0]);
    }
    return row->obstacle(graph, node);
}

host::Result<void> Lowerer::run(std::span<const std::uint32_t> nodes, std::span<const ValueId> inputs,
                                std::span<const ValueId> outputs) {
    for (const ValueId id : inputs) {
        const Value& v = graph_[id];
        const TensorId t = new_tensor(v.name, element_type(v.stored_type()), v.shape, Tensor::Role::Input);
        network_.inputs.push_back(t);
        places_[id] = dense_place(t, v.shape);
    }
    choose_homes(nodes, outputs);
    for (const std::uint32_t n : nodes) {
        node_ = n;
        const Node& node = graph_.nodes[n];
        const Row* row = row_of(node.op);
        if (row == nullptr) return host::failure(ErrorCode::Internal, "{} has no form on the NPU", op_name(node.op));
        const std::size_t first_step = network_.steps.size();
        auto done = row->lower(*this, node);
        if (done) done = check_sizes(network_, first_step);
        if (!done)
            return std::unexpected(
                std::move(done.error()).with_context(fmt::format("lowering '{}'", node.source.node)));
        TRY(copy_home());
    }
    // Outputs that are another's memory, an input's or a constant's are copied at last.
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        const Value& v = graph_[outputs[i]];
        const Place to = dense_place(network_.outputs[i], v.shape), from = place(outputs[i]);
        if (from.tensor == to.tensor) continue;
        TRY(copy(v.shape, element_type(v.stored_type()), from, to));
    }
    for (const std::uint32_t n : nodes)
        for (const ValueId id : graph_.nodes[n].outputs)
            if (const auto p = places_.find(id); p != places_.end() &&
                                                 network_.tensors[p->second.tensor].role != Tensor::Role::Input &&
                                                 network_.tensors[p->second.tensor].role != Tensor::Role::Constant)
                network_.values.push_back({id, p->second.tensor, p->second.offset, p->second.strides});
    return {};
}

host::Result<Network> lower(const Graph& graph, std::span<const std::uint32_t> nodes, std::span<const ValueId> inputs,
                            std::span<const ValueId> outputs) {
    Network network;
    Lowerer lowerer(graph, network);
    TRY(lowerer.run(nodes, inputs, outputs));
    return network;
}

}  // namespace talpa::compiler
