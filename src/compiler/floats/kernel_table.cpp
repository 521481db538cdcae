// Which kernel runs which operator.
#include <array>

#include "compiler/floats/kernel.h"

namespace talpa::compiler {

Kernel find_kernel(Op op) {
    struct Entry {
        Op op;
        Kernel kernel;
    };
    static constexpr auto kTable = std::to_array<Entry>({
        {Op::Conv2d, conv2d},
        {Op::ConvTranspose2d, conv_transpose2d},
        {Op::FullyConnected, fully_connected},
        {Op::MatMul, matmul},
        {Op::MaxPool2d, max_pool2d},
        {Op::AvgPool2d, avg_pool2d},
        {Op::Mean, reduce},
        {Op::Sum, reduce},
        {Op::ReduceMax, reduce},
        {Op::ReduceMin, reduce},
        {Op::ArgMax, argmax},
        {Op::CumSum, cumsum},
        {Op::Add, binary},
        {Op::Sub, binary},
        {Op::Mul, binary},
        {Op::Div, binary},
        {Op::Minimum, binary},
        {Op::Maximum, binary},
        {Op::Pow, binary},
        {Op::Prelu, prelu},
        {Op::Softmax, softmax},
        {Op::LogSoftmax, softmax},
        {Op::LayerNorm, layer_norm},
        {Op::GroupNorm, group_norm},
        {Op::BatchNorm, batch_norm},
        {Op::Concat, concat},
        {Op::Slice, slice},
        {Op::Pad, pad},
        {Op::Reshape, copy},
        {Op::Permute, permute},
        {Op::Expand, expand},
        {Op::Resize, resize},
        {Op::Gather, gather},
        {Op::Requantize, copy},
    });
    for (const auto& entry : kTable)
        if (entry.op == op) return entry.kernel;
    return op >= Op::ClampOp && op <= Op::Sign ? unary : nullptr;  // all the rest between them are unary
}

}  // namespace talpa::compiler
