// Operators that compute (model-formats, section 3.4). Layouts are TensorFlow's: N x H x W x C, as in the graph.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/graph/constant.h"
#include "compiler/graph/infer.h"
#include "compiler/import/tflite/call.h"

namespace talpa::compiler::import::tflite {
namespace {

using host::failure;
using host::Result;

constexpr double kOpen = std::numeric_limits<double>::infinity();

/// Padding of one dimension: SAME puts the larger half behind (section 3.4).
Result<std::pair<std::int64_t, std::int64_t>> padding(std::int8_t kind, std::int64_t in, std::int64_t kernel,
                                                      std::int64_t stride, std::int64_t dilation) {
    if (stride < 1 || kernel < 1 || dilation < 1)
        return failure(ErrorCode::InvalidProgram, "kernel {}, stride {}, dilation {}", kernel, stride, dilation);
    if (kind == 1) return std::pair<std::int64_t, std::int64_t>{0, 0};
    if (kind != 0) return failure(ErrorCode::InvalidProgram, "padding {}", kind);
    const auto out = (in + stride - 1) / stride;
    const auto total = std::max<std::int64_t>(0, (out - 1) * stride + dilation * (kernel - 1) + 1 - in);
    return std::pair{total / 2, total - total / 2};
}

Result<Edges> paddings(std::int8_t kind, const Shape& x, Pair kernel, Pair stride, Pair dilation) {
    if (x.size() != 4) return failure(ErrorCode::InvalidProgram, "an input of shape {}", shape_text(x));
    TRY_ASSIGN(const auto high, padding(kind, x[1], kernel[0], stride[0], dilation[0]));
    TRY_ASSIGN(const auto wide, padding(kind, x[2], kernel[1], stride[1], dilation[1]));
    return Edges{high.first, wide.first, high.second, wide.second};
}

Result<Pair> pair_option(Call& call, unsigned width_slot, unsigned height_slot, std::int32_t absent) {
    TRY_ASSIGN(const auto w, call.option<std::int32_t>(width_slot, absent));
    TRY_ASSIGN(const auto h, call.option<std::int32_t>(height_slot, absent));
    return Pair{h, w};
}

/// Weights of a hybrid model (integers beside float activations) become float.
Result<ValueId> matching_weight(Call& call, ValueId x, ValueId weight) {
    if (!call.b[weight].is_constant())
        return failure(ErrorCode::NotSupported, "the weight '{}' is computed: it must be a constant",
                       call.b[weight].name);
    if (call.b[weight].quantization && !call.b[x].quantization)
        return call.b.requantize(weight, std::nullopt, call.b[weight].name + ".real");
    return weight;
}

/// The bias with the scale that it must have, s_x * s_w of each channel; the stored one may differ by 1 %
/// (section 3.3).
Result<ValueId> matching_bias(Call& call, ValueId x, ValueId weight, ValueId bias) {
    Builder& b = call.b;
    if (bias == kNoValue) return bias;
    const Value& v = b[bias];
    if (!v.is_constant())
        return failure(ErrorCode::NotSupported, "the bias '{}' is computed: it must be a constant", v.name);
    const auto &qx = b[x].quantization, &qw = b[weight].quantization;
    if (!qx || !qw) {
        if (v.type == DType::Float32) return b.requantize(bias, std::nullopt, v.name + ".real");
        return failure(ErrorCode::InvalidProgram, "a bias of {} in a float operator", dtype_name(v.type));
    }
    if (v.stored_type() != DType::Int32 && v.stored_type() != DType::Int64)
        return failure(ErrorCode::NotSupported, "a bias of {} in a quantized operator", dtype_name(v.stored_type()));
    const auto channels = static_cast<std::size_t>(element_count(v.shape));
    Quantization q{.type = v.stored_type(),
                   .scales = {},
                   .zero_points = std::vector<std::int32_t>(channels, 0),
                   .axis = 0,
                   .min = INT32_MIN,
                   .max = INT32_MAX};
    if (v.shape.size() != 1) return failure(ErrorCode::InvalidProgram, "a bias of shape {}", shape_text(v.shape));
    for (std::size_t c = 0; c < channels; ++c) {
        const double wanted = qx->scales[0] * qw->scales[qw->per_tensor() ? 0 : std::min(c, qw->scales.size() - 1)];
        if (v.quantization) {
            const double given = v.quantization->scales[std::min(c, v.quantization->scales.size() - 1)];
            if (std::abs(given - wanted) > 0.01 * wanted)
                return failure(ErrorCode::InvalidProgram,
                               "bias '{}' has scale {} in channel {}, input and weight give {}", v.name, given, c,
                               wanted);
        }
        q.scales.push_back(wanted);
    }
    if (q.type == DType::Int64) {
        q.min = INT64_MIN;
        q.max = INT64_MAX;
    }
    return b.value({.name = v.name + ".bias", .shape = v.shape, .quantization = std::move(q), .constant = v.constant});
}

struct ConvSlots {
    unsigned padding, stride_w, stride_h, activation, dilation_w, dilation_h;
};

Result<void> convolution(Call& call, ConvSlots slots, bool depthwise) {
    Builder& b = call.b;
    TRY_ASSIGN(const auto x, call.operand(0));
    TRY_ASSIGN(auto weight, call.operand(1));
    TRY_ASSIGN(weight, matching_weight(call, x, weight));
    const Shape xs = b[x].shape, ws = b[weight].shape;
    if (xs.size() != 4 || ws.size() != 4 || xs[3] < 1 || ws[3] < 1)
        return failure(ErrorCode::InvalidProgram, "shapes {} and {}", shape_text(xs), shape_text(ws));
    ConvAttr attr;
    TRY_ASSIGN(attr.stride, pair_option(call, slots.stride_w, slots.stride_h, 0));
    TRY_ASSIGN(attr.dilation, pair_option(call, slots.dilation_w, slots.dilation_h, 1));
    TRY_ASSIGN(const auto kind, call.option<std::int8_t>(slots.padding, 0));
    TRY_ASSIGN(attr.padding, paddings(kind, xs, {ws[1], ws[2]}, attr.stride, attr.dilation));
    TRY_ASSIGN(attr.clamp, call.activation(slots.activation));
    if (depthwise) {
        if (ws[0] != 1 || ws[3] % xs[3] != 0)
            return failure(ErrorCode::InvalidProgram, "a depthwise weight {} for {} channels", shape_text(ws), xs[3]);
        attr.groups = xs[3];
        TRY_ASSIGN(weight, b.permute(weight, {3, 1, 2, 0}, b[weight].name + ".ohwi"));
    } else {
        attr.groups = xs[3] / ws[3];
    }
    TRY_ASSIGN(const auto bias, matching_bias(call, x, weight, call.optional(2)));
    return call.make(Op::Conv2d, {x, weight, bias}, attr);
}

Result<void> import_conv(Call& call, Op) {
    return convolution(call, {0, 1, 2, 3, 4, 5}, false);
}
Result<void> import_depthwise(Call& call, Op) {
    return convolution(call, {0, 1, 2, 4, 5, 6}, true);
}

Result<void> import_transposed(Call& call, Op op) {
    Builder& b = call.b;
    TRY_ASSIGN(const auto x, call.operand(2));
    TRY_ASSIGN(auto weight, call.operand(1));
    TRY_ASSIGN(weight, matching_weight(call, x, weight));
    const Shape xs = b[x].shape, ws = b[weight].shape, out = call.result().shape;
    if (xs.size() != 4 || ws.size() != 4 || out.size() != 4) return failure(ErrorCode::InvalidProgram, "ranks");
    ConvAttr attr;
    TRY_ASSIGN(attr.stride, pair_option(call, 1, 2, 0));
    TRY_ASSIGN(attr.clamp, call.activation(3));
    TRY_ASSIGN(const auto kind, call.option<std::int8_t>(0, 0));
    if (kind != 0 && kind != 1) return failure(ErrorCode::InvalidProgram, "padding {}", kind);
    std::int64_t before[2], after[2];
    for (const std::size_t d : {0u, 1u}) {
        // The padding of the convolution that leads from the result's size to the input's.
        const auto whole = (xs[d + 1] - 1) * attr.stride[d] + ws[d + 1];
        const auto total = kind == 0 ? std::max<std::int64_t>(0, whole - out[d + 1]) : 0;
        before[d] = total / 2;
        after[d] = total - total / 2;
        attr.output_padding[d] = out[d + 1] - (whole - total);
        if (attr.output_padding[d] < 0) {  // VALID that drops rows at the end
            after[d] -= attr.output_padding[d];
            attr.output_padding[d] = 0;
        }
    }
    attr.padding = {before[0], before[1], after[0], after[1]};
    TRY_ASSIGN(const auto bias, matching_bias(call, x, weight, call.optional(3)));
    return call.make(op, {x, weight, bias}, attr);
}

Result<void> import_fully_connected(Call& call, Op op) {
    Builder& b = call.b;
    TRY_ASSIGN(auto x, call.operand(0));
    TRY_ASSIGN(auto weight, call.operand(1));
    TRY_ASSIGN(weight, matching_weight(call, x, weight));
    FullyConnectedAttr attr;
    TRY_ASSIGN(attr.clamp, call.activation(0));
    TRY_ASSIGN(const auto format, call.option<std::int8_t>(1, 0));
    TRY_ASSIGN(const bool keep, call.option<bool>(2, false));
    if (format != 0) return failure(ErrorCode::NotSupported, "shuffled weights");
    const Shape xs = b[x].shape, ws = b[weight].shape;
    if (ws.size() != 2 || ws[1] < 1 || element_count(xs) % ws[1] != 0)
        return failure(ErrorCode::InvalidProgram, "shapes {} and {}", shape_text(xs), shape_text(ws));
    if (!keep) {
        TRY_ASSIGN(x, b.reshape(x, {element_count(xs) / ws[1], ws[1]}, call.name() + ".flat"));
    }
    TRY_ASSIGN(const auto bias, matching_bias(call, x, weight, call.optional(2)));
    TRY_ASSIGN(auto y, b.add(op, {x, weight, bias}, attr, call.name()));
    if (b[y].shape != call.result().shape && element_count(b[y].shape) == element_count(call.result().shape)) {
        b.graph()[y].quantization = call.result().quantization;
        TRY_ASSIGN(y, b.reshape(y, call.result().shape, call.name() + ".shaped"));
    }
    return call.give(y);
}

Result<void> import_pool(Call& call, Op op) {
    TRY_ASSIGN(const auto x, call.operand(0));
    PoolAttr attr;
    TRY_ASSIGN(attr.stride, pair_option(call, 1, 2, 0));
    TRY_ASSIGN(attr.kernel, pair_option(call, 3, 4, 0));
    TRY_ASSIGN(const auto kind, call.option<std::int8_t>(0, 0));
    TRY_ASSIGN(attr.padding, paddings(kind, call.b[x].shape, attr.kernel, attr.stride, {1, 1}));
    TRY_ASSIGN(attr.clamp, call.activation(5));
    return call.make(op, {x}, attr);
}

template <unsigned kActivationSlot>
Result<void> import_binary(Call& call, Op op) {
    TRY_ASSIGN(const auto x, call.operand(0));
    TRY_ASSIGN(const auto y, call.operand(1));
    BinaryAttr attr;
    TRY_ASSIGN(attr.clamp, call.activation(kActivationSlot));
    return call.make(op, {x, y}, attr);
}

Result<void> import_binary_plain(Call& call, Op op) {
    TRY_ASSIGN(const auto x, call.operand(0));
    TRY_ASSIGN(const auto y, call.operand(1));
    return call.make(op, {x, y}, BinaryAttr{});
}

Result<void> import_squared_difference(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.operand(0));
    TRY_ASSIGN(const auto y, call.operand(1));
    TRY_ASSIGN(const auto d, call.b.add(Op::Sub, {x, y}, BinaryAttr{}, call.name() + ".difference"));
    return call.make(Op::Square, {d}, UnaryAttr{});
}

Result<void> import_unary(Call& call, Op op) {
    TRY_ASSIGN(const auto x, call.operand(0));
    return call.make(op, {x}, UnaryAttr{});
}

Result<void> clamped(Call& call, Clamp clamp) {
    TRY_ASSIGN(const auto x, call.operand(0));
    return call.make(Op::ClampOp, {x}, UnaryAttr{.clamp = clamp});
}
Result<void> import_relu(Call& call, Op) {
    return clamped(call, {0, kOpen});
}
Result<void> import_relu6(Call& call, Op) {
    return clamped(call, {0, 6});
}
Result<void> import_relu_n1(Call& call, Op) {
    return clamped(call, {-1, 1});
}
Result<void> import_relu01(Call& call, Op) {
    return clamped(call, {0, 1});
}

Result<void> import_leaky_relu(Call& call, Op op) {
    TRY_ASSIGN(const auto x, call.operand(0));
    TRY_ASSIGN(const auto alpha, call.option<float>(0, 0));
    return call.make(op, {x}, UnaryAttr{.alpha = static_cast<double>(alpha)});
}

Result<void> import_elu(Call& call, Op op) {
    TRY_ASSIGN(const auto x, call.operand(0));
    return call.make(op, {x}, UnaryAttr{.alpha = 1});
}

Result<void> import_gelu(Call& call, Op op) {
    TRY_ASSIGN(const auto x, call.operand(0));
    TRY_ASSIGN(const bool approximate, call.option<bool>(0, false));
    return call.make(op, {x}, UnaryAttr{.approximate = approximate});
}

Result<void> import_softmax(Call& call, Op op) {
    TRY_ASSIGN(const auto x, call.operand(0));
    AxisAttr attr{.axis = static_cast<int>(call.b[x].shape.size()) - 1};
    if (op == Op::Softmax) {
        TRY_ASSIGN(const auto beta, call.option<float>(0, 0));
        attr.beta = static_cast<double>(beta);
    }
    return call.make(op, {x}, attr);
}

Result<void> import_reduce(Call& call, Op op) {
    TRY_ASSIGN(const auto x, call.operand(0));
    TRY_ASSIGN(auto axes, call.axes(1, call.b[x].shape.size()));
    TRY_ASSIGN(const bool keep, call.option<bool>(0, false));
    std::ranges::sort(axes);
    const auto twice = std::ranges::unique(axes);
    axes.erase(twice.begin(), twice.end());
    return call.make(op, {x}, ReduceAttr{axes, keep});
}

Result<void> import_argmax(Call& call, Op op) {
    TRY_ASSIGN(const auto x, call.operand(0));
    TRY_ASSIGN(const auto axes, call.axes(1, call.b[x].shape.size()));
    if (axes.size() != 1) return failure(ErrorCode::InvalidProgram, "{} axes", axes.size());
    return call.make(op, {x}, ReduceAttr{axes, false});
}

Result<void> import_matmul(Call& call, Op op) {
    Builder& b = call.b;
    ValueId sides[2];
    for (const unsigned i : {0u, 1u}) {
        TRY_ASSIGN(sides[i], call.operand(i));
        TRY_ASSIGN(const bool adjoint, call.option<bool>(i, false));
        if (!adjoint) continue;
        std::vector<int> order(b[sides[i]].shape.size());
        for (std::size_t d = 0; d < order.size(); ++d) order[d] = static_cast<int>(d);
        if (order.size() < 2) return failure(ErrorCode::InvalidProgram, "rank {}", order.size());
        std::swap(order[order.size() - 1], order[order.size() - 2]);
        TRY_ASSIGN(sides[i], b.permute(sides[i], order, call.name() + ".adjoint"));
    }
    return call.make(op, {sides[0], sides[1]}, NoAttr{});
}

Result<void> resize(Call& call, ResizeAttr::Mode mode, unsigned first_slot) {
    TRY_ASSIGN(const auto x, call.operand(0));
    ResizeAttr attr{.mode = mode};
    TRY_ASSIGN(attr.align_corners, call.option<bool>(first_slot, false));
    TRY_ASSIGN(attr.half_pixel, call.option<bool>(first_slot + 1, false));
    TRY_ASSIGN(const auto y, call.b.add(Op::Resize, {x}, attr, call.name(), call.result().shape));
    return call.give(y);
}
Result<void> import_bilinear(Call& call, Op) {
    return resize(call, ResizeAttr::Mode::Bilinear, 2);
}
Result<void> import_nearest(Call& call, Op) {
    return resize(call, ResizeAttr::Mode::Nearest, 0);
}

/// QUANTIZE and DEQUANTIZE: only what the result says matters.
Result<void> import_requantize(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.operand(0));
    if (call.b[x].type != DType::Float32)
        return failure(ErrorCode::InvalidProgram, "'{}' has no scale", call.b[x].name);
    return call.give(x);
}

constexpr Operator kComputeOperators[] = {
    {0, "ADD", import_binary<0>, Op::Add, 11},
    {41, "SUB", import_binary<0>, Op::Sub, 28},
    {18, "MUL", import_binary<0>, Op::Mul, 21},
    {42, "DIV", import_binary<0>, Op::Div, 29},
    {55, "MAXIMUM", import_binary_plain, Op::Maximum},
    {57, "MINIMUM", import_binary_plain, Op::Minimum},
    {78, "POW", import_binary_plain, Op::Pow},
    {99, "SQUARED_DIFFERENCE", import_squared_difference},
    {54, "PRELU", import_binary_plain, Op::Prelu},
    {1, "AVERAGE_POOL_2D", import_pool, Op::AvgPool2d, 5},
    {17, "MAX_POOL_2D", import_pool, Op::MaxPool2d, 5},
    {3, "CONV_2D", import_conv, Op::Conv2d, 1},
    {4, "DEPTHWISE_CONV_2D", import_depthwise, Op::Conv2d, 2},
    {67, "TRANSPOSE_CONV", import_transposed, Op::ConvTranspose2d, 49},
    {9, "FULLY_CONNECTED", import_fully_connected, Op::FullyConnected, 8},
    {126, "BATCH_MATMUL", import_matmul, Op::MatMul, 101},
    {6, "DEQUANTIZE", import_requantize},
    {114, "QUANTIZE", import_requantize},
    {14, "LOGISTIC", import_unary, Op::Sigmoid},
    {28, "TANH", import_unary, Op::Tanh},
    {117, "HARD_SWISH", import_unary, Op::HardSwish},
    {101, "ABS", import_unary, Op::Abs},
    {59, "NEG", import_unary, Op::Neg},
    {47, "EXP", import_unary, Op::Exp},
    {73, "LOG", import_unary, Op::Log},
    {75, "SQRT", import_unary, Op::Sqrt},
    {76, "RSQRT", import_unary, Op::Rsqrt},
    {92, "SQUARE", import_unary, Op::Square},
    {8, "FLOOR", import_unary, Op::Floor},
    {104, "CEIL", import_unary, Op::Ceil},
    {116, "ROUND", import_unary, Op::Round},
    {66, "SIN", import_unary, Op::Sin},
    {108, "COS", import_unary, Op::Cos},
    {19, "RELU", import_relu},
    {21, "RELU6", import_relu6},
    {20, "RELU_N1_TO_1", import_relu_n1},
    {152, "RELU_0_TO_1", import_relu01},
    {98, "LEAKY_RELU", import_leaky_relu, Op::LeakyRelu, 75},
    {111, "ELU", import_elu, Op::Elu},
    {150, "GELU", import_gelu, Op::Gelu, 116},
    {25, "SOFTMAX", import_softmax, Op::Softmax, 9},
    {50, "LOG_SOFTMAX", import_softmax, Op::LogSoftmax},
    {40, "MEAN", import_reduce, Op::Mean, 27},
    {74, "SUM", import_reduce, Op::Sum, 27},
    {82, "REDUCE_MAX", import_reduce, Op::ReduceMax, 27},
    {89, "REDUCE_MIN", import_reduce, Op::ReduceMin, 27},
    {56, "ARG_MAX", import_argmax, Op::ArgMax},
    {23, "RESIZE_BILINEAR", import_bilinear, Op::Resize, 15},
    {97, "RESIZE_NEAREST_NEIGHBOR", import_nearest, Op::Resize, 74},
};

}  // namespace

std::span<const Operator> compute_operators() {
    return kComputeOperators;
}

}  // namespace talpa::compiler::import::tflite
