#include "compiler/graph/ops.h"

#include <array>

namespace talpa::compiler {
namespace {

template <typename T, std::size_t I = 0>
consteval std::uint8_t index_of() {
    if constexpr (std::is_same_v<std::variant_alternative_t<I, Attributes>, T>)
        return I;
    else
        return index_of<T, I + 1>();
}

constexpr auto kNone = index_of<NoAttr>(), kConv = index_of<ConvAttr>(), kFc = index_of<FullyConnectedAttr>(),
               kPool = index_of<PoolAttr>(), kReduce = index_of<ReduceAttr>(), kBinary = index_of<BinaryAttr>(),
               kUnary = index_of<UnaryAttr>(), kAxis = index_of<AxisAttr>(), kSlice = index_of<SliceAttr>(),
               kPad = index_of<PadAttr>(), kPermute = index_of<PermuteAttr>(), kResize = index_of<ResizeAttr>(),
               kNorm = index_of<NormAttr>();

constexpr std::array kFacts = std::to_array<OpFacts>({
    {Op::Conv2d, "conv2d", OpClass::Spatial, kConv, 3, 3},
    {Op::ConvTranspose2d, "conv_transpose2d", OpClass::Spatial, kConv, 3, 3},
    {Op::FullyConnected, "fully_connected", OpClass::Matrix, kFc, 3, 3},
    {Op::MatMul, "matmul", OpClass::Matrix, kNone, 2, 2},
    {Op::MaxPool2d, "max_pool2d", OpClass::Spatial, kPool, 1, 1},
    {Op::AvgPool2d, "avg_pool2d", OpClass::Spatial, kPool, 1, 1},
    {Op::Mean, "mean", OpClass::Reduce, kReduce, 1, 1},
    {Op::Sum, "sum", OpClass::Reduce, kReduce, 1, 1},
    {Op::ReduceMax, "reduce_max", OpClass::Reduce, kReduce, 1, 1},
    {Op::ReduceMin, "reduce_min", OpClass::Reduce, kReduce, 1, 1},
    {Op::ArgMax, "argmax", OpClass::Reduce, kReduce, 1, 1},
    {Op::CumSum, "cumsum", OpClass::Reduce, kReduce, 1, 1},
    {Op::Add, "add", OpClass::Binary, kBinary, 2, 2},
    {Op::Sub, "sub", OpClass::Binary, kBinary, 2, 2},
    {Op::Mul, "mul", OpClass::Binary, kBinary, 2, 2},
    {Op::Div, "div", OpClass::Binary, kBinary, 2, 2},
    {Op::Minimum, "minimum", OpClass::Binary, kBinary, 2, 2},
    {Op::Maximum, "maximum", OpClass::Binary, kBinary, 2, 2},
    {Op::Pow, "pow", OpClass::Binary, kBinary, 2, 2},
    {Op::ClampOp, "clamp", OpClass::Unary, kUnary, 1, 1},
    {Op::LeakyRelu, "leaky_relu", OpClass::Unary, kUnary, 1, 1},
    {Op::Prelu, "prelu", OpClass::Binary, kBinary, 2, 2},
    {Op::Elu, "elu", OpClass::Unary, kUnary, 1, 1},
    {Op::Sigmoid, "sigmoid", OpClass::Unary, kUnary, 1, 1},
    {Op::Tanh, "tanh", OpClass::Unary, kUnary, 1, 1},
    {Op::HardSigmoid, "hard_sigmoid", OpClass::Unary, kUnary, 1, 1},
    {Op::HardSwish, "hard_swish", OpClass::Unary, kUnary, 1, 1},
    {Op::Silu, "silu", OpClass::Unary, kUnary, 1, 1},
    {Op::Gelu, "gelu", OpClass::Unary, kUnary, 1, 1},
    {Op::Exp, "exp", OpClass::Unary, kUnary, 1, 1},
    {Op::Log, "log", OpClass::Unary, kUnary, 1, 1},
    {Op::Sqrt, "sqrt", OpClass::Unary, kUnary, 1, 1},
    {Op::Rsqrt, "rsqrt", OpClass::Unary, kUnary, 1, 1},
    {Op::Abs, "abs", OpClass::Unary, kUnary, 1, 1},
    {Op::Neg, "neg", OpClass::Unary, kUnary, 1, 1},
    {Op::Reciprocal, "reciprocal", OpClass::Unary, kUnary, 1, 1},
    {Op::Square, "square", OpClass::Unary, kUnary, 1, 1},
    {Op::Softplus, "softplus", OpClass::Unary, kUnary, 1, 1},
    {Op::Mish, "mish", OpClass::Unary, kUnary, 1, 1},
    {Op::Sin, "sin", OpClass::Unary, kUnary, 1, 1},
    {Op::Cos, "cos", OpClass::Unary, kUnary, 1, 1},
    {Op::Erf, "erf", OpClass::Unary, kUnary, 1, 1},
    {Op::Floor, "floor", OpClass::Unary, kUnary, 1, 1},
    {Op::Ceil, "ceil", OpClass::Unary, kUnary, 1, 1},
    {Op::Round, "round", OpClass::Unary, kUnary, 1, 1},
    {Op::Sign, "sign", OpClass::Unary, kUnary, 1, 1},
    {Op::Softmax, "softmax", OpClass::Axis, kAxis, 1, 1},
    {Op::LogSoftmax, "log_softmax", OpClass::Axis, kAxis, 1, 1},
    {Op::LayerNorm, "layer_norm", OpClass::Norm, kNorm, 3, 3},
    {Op::GroupNorm, "group_norm", OpClass::Norm, kNorm, 3, 3},
    {Op::BatchNorm, "batch_norm", OpClass::Norm, kNorm, 5, 5},
    {Op::Concat, "concat", OpClass::Movement, kAxis, 1, kAnyOperands},
    {Op::Slice, "slice", OpClass::Movement, kSlice, 1, 1},
    {Op::Pad, "pad", OpClass::Movement, kPad, 1, 1},
    {Op::Reshape, "reshape", OpClass::Movement, kNone, 1, 1},
    {Op::Permute, "permute", OpClass::Movement, kPermute, 1, 1},
    {Op::Expand, "expand", OpClass::Movement, kNone, 1, 1},
    {Op::Resize, "resize", OpClass::Spatial, kResize, 1, 1},
    {Op::Gather, "gather", OpClass::Movement, kAxis, 2, 2},
    {Op::Requantize, "requantize", OpClass::Unary, kNone, 1, 1},
});

consteval bool in_order() {
    for (std::size_t i = 0; i < kFacts.size(); ++i)
        if (kFacts[i].op != static_cast<Op>(i)) return false;
    return kFacts.size() == static_cast<std::size_t>(Op::Requantize) + 1;
}
static_assert(in_order(), "one row for each operator, in the enumeration's order");

}  // namespace

const OpFacts& op_facts(Op op) {
    return kFacts[static_cast<std::size_t>(op)];
}

const char* op_name(Op op) {
    return op_facts(op).name;
}

Clamp* fused_clamp(Node& node) {
    switch (node.op) {
        case Op::Conv2d:
        case Op::ConvTranspose2d:
            return &node.as<ConvAttr>().clamp;
        case Op::FullyConnected:
            return &node.as<FullyConnectedAttr>().clamp;
        case Op::MaxPool2d:
        case Op::AvgPool2d:
            return &node.as<PoolAttr>().clamp;
        case Op::Add:
        case Op::Sub:
        case Op::Mul:
        case Op::Div:
        case Op::Minimum:
        case Op::Maximum:
        case Op::Pow:
        case Op::Prelu:
            return &node.as<BinaryAttr>().clamp;
        default:
            return nullptr;
    }
}

const Clamp* fused_clamp(const Node& node) {
    return fused_clamp(const_cast<Node&>(node));
}

}  // namespace talpa::compiler
