// Activations and elementwise arithmetic (model-formats, section 1.5).
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "compiler/graph/constant.h"
#include "compiler/graph/infer.h"
#include "compiler/import/pt2/call.h"

namespace talpa::compiler::import::pt2 {
namespace {

using host::failure;
using host::Result;

constexpr double kOpen = std::numeric_limits<double>::infinity();

Result<void> unary(Call& call, Op op, UnaryAttr attr) {
    TRY_ASSIGN(const auto x, call.tensor("self"));
    TRY_ASSIGN(const auto y, call.b.add(op, {x}, attr, call.name()));
    call.give(y);
    return {};
}

Result<void> import_unary(Call& call, Op op) {
    return unary(call, op, {});
}

Result<void> import_relu(Call& call, Op) {
    return unary(call, Op::ClampOp, {.clamp = {0, kOpen}});
}

Result<void> import_relu6(Call& call, Op) {
    return unary(call, Op::ClampOp, {.clamp = {0, 6}});
}

/// Where the bounds cross, all becomes the upper one.
Result<void> clamped(Call& call, double low, double high) {
    return unary(call, Op::ClampOp, {.clamp = {std::min(low, high), high}});
}

Result<void> import_hardtanh(Call& call, Op) {
    TRY_ASSIGN(const auto low, call.number("min_val", -1.0));
    TRY_ASSIGN(const auto high, call.number("max_val", 1.0));
    return clamped(call, low, high);
}

Result<void> import_clamp(Call& call, Op) {
    TRY_ASSIGN(const auto low, call.number("min", -kOpen));
    TRY_ASSIGN(const auto high, call.number("max", kOpen));
    return clamped(call, low, high);
}

Result<void> import_leaky_relu(Call& call, Op op) {
    TRY_ASSIGN(const auto slope, call.number("negative_slope", 0.01));
    return unary(call, op, {.alpha = slope});
}

Result<void> import_elu(Call& call, Op op) {
    TRY_ASSIGN(const auto alpha, call.number("alpha", 1.0));
    TRY_ASSIGN(const auto scale, call.number("scale", 1.0));
    TRY_ASSIGN(const auto input_scale, call.number("input_scale", 1.0));
    if (scale != 1.0 || input_scale != 1.0)
        return failure(ErrorCode::NotSupported, "scale {} and input_scale {}: only 1 is supported", scale, input_scale);
    return unary(call, op, {.alpha = alpha});
}

Result<void> import_softplus(Call& call, Op op) {
    TRY_ASSIGN(const auto beta, call.number("beta", 1.0));
    TRY_ASSIGN(const auto threshold, call.number("threshold", 20.0));
    return unary(call, op, {.alpha = threshold, .beta = beta});
}

Result<void> import_gelu(Call& call, Op op) {
    TRY_ASSIGN(const auto form, call.text("approximate", "none"));
    if (form != "none" && form != "tanh") return failure(ErrorCode::InvalidProgram, "approximate '{}'", form);
    return unary(call, op, {.approximate = form == "tanh"});
}

Result<void> import_prelu(Call& call, Op op) {
    Builder& b = call.b;
    TRY_ASSIGN(const auto x, call.tensor("self"));
    TRY_ASSIGN(auto slope, call.tensor("weight"));
    const auto count = element_count(b[slope].shape);
    const auto rank = b[x].shape.size();
    Shape shape;  // along dimension 1
    if (count > 1)
        for (std::size_t d = 1; d < std::max<std::size_t>(rank, 2); ++d) shape.push_back(d == 1 ? count : 1);
    else
        shape = {1};
    TRY_ASSIGN(slope, b.reshape(slope, shape, b[slope].name + ".slope"));
    TRY_ASSIGN(const auto y, b.add(op, {x, slope}, BinaryAttr{}, call.name()));
    call.give(y);
    return {};
}

Result<void> import_softmax(Call& call, Op op) {
    Builder& b = call.b;
    TRY_ASSIGN(const auto x, call.tensor("self"));
    TRY_ASSIGN(const int dim, call.dimension("dim", b[x].shape.size()));
    call.ignore({"half_to_float", "dtype"});
    TRY_ASSIGN(const auto y, b.add(op, {x}, AxisAttr{.axis = dim}, call.name()));
    call.give(y);
    return {};
}

Result<void> import_glu(Call& call, Op) {
    Builder& b = call.b;
    TRY_ASSIGN(const auto x, call.tensor("self"));
    const Shape shape = b[x].shape;
    TRY_ASSIGN(const int dim, call.dimension("dim", shape.size(), -1));
    const auto d = static_cast<std::size_t>(dim);
    if (shape.empty() || shape[d] % 2 != 0) return failure(ErrorCode::InvalidProgram, "glu of {}", shape_text(shape));
    SliceAttr first{Shape(shape.size(), 0), shape, Shape(shape.size(), 1)}, second = first;
    first.ends[d] = second.starts[d] = shape[d] / 2;
    TRY_ASSIGN(const auto a, b.add(Op::Slice, {x}, first, call.name() + ".a"));
    TRY_ASSIGN(const auto gate, b.add(Op::Slice, {x}, second, call.name() + ".b"));
    TRY_ASSIGN(const auto open, b.add(Op::Sigmoid, {gate}, UnaryAttr{}, call.name() + ".gate"));
    TRY_ASSIGN(const auto y, b.add(Op::Mul, {a, open}, BinaryAttr{}, call.name()));
    call.give(y);
    return {};
}

Result<ValueId> number(Builder& b, double value, const std::string& name) {
    const float v = static_cast<float>(value);
    return b.value(float_constant(name, {}, {&v, 1}));
}

/// add, sub: the second operand may be scaled by alpha. rsub: the operands change places.
Result<void> sum(Call& call, Op op, bool reversed) {
    Builder& b = call.b;
    TRY_ASSIGN(auto x, call.tensor("self"));
    TRY_ASSIGN(auto y, call.tensor_or_number("other"));
    TRY_ASSIGN(const auto alpha, call.number("alpha", 1.0));
    if (reversed) std::swap(x, y);
    if (alpha != 1.0) {
        TRY_ASSIGN(const auto factor, number(b, alpha, call.name() + ".alpha"));
        TRY_ASSIGN(const auto scaled,
                   b.add(Op::Mul, {reversed ? x : y, factor}, BinaryAttr{}, call.name() + ".scaled"));
        (reversed ? x : y) = scaled;
    }
    TRY_ASSIGN(const auto z, b.add(op, {x, y}, BinaryAttr{}, call.name()));
    call.give(z);
    return {};
}

Result<void> import_sum(Call& call, Op op) {
    return sum(call, op, false);
}
Result<void> import_reverse_sub(Call& call, Op op) {
    return sum(call, op, true);
}

Result<void> import_binary(Call& call, Op op) {
    TRY_ASSIGN(const auto x, call.tensor("self"));
    TRY_ASSIGN(const auto y, call.tensor_or_number("other"));
    TRY_ASSIGN(const auto z, call.b.add(op, {x, y}, BinaryAttr{}, call.name()));
    call.give(z);
    return {};
}

Result<void> import_div_mode(Call& call, Op op) {
    if (call.has("rounding_mode")) {
        Builder& b = call.b;
        TRY_ASSIGN(const auto mode, call.text("rounding_mode"));
        if (mode != "floor") return failure(ErrorCode::NotSupported, "division rounded by '{}'", mode);
        TRY_ASSIGN(const auto x, call.tensor("self"));
        TRY_ASSIGN(const auto y, call.tensor_or_number("other"));
        TRY_ASSIGN(auto z, b.add(op, {x, y}, BinaryAttr{}, call.name() + ".quotient"));
        TRY_ASSIGN(z, b.add(Op::Floor, {z}, UnaryAttr{}, call.name()));
        call.give(z);
        return {};
    }
    call.ignore({"rounding_mode"});
    return import_binary(call, op);
}

Result<void> import_pow(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.tensor("self"));
    TRY_ASSIGN(const auto exponent, call.number("exponent"));
    Builder& b = call.b;
    if (exponent == 2.0 || exponent == 0.5) {
        TRY_ASSIGN(const auto y, b.add(exponent == 2.0 ? Op::Square : Op::Sqrt, {x}, UnaryAttr{}, call.name()));
        call.give(y);
        return {};
    }
    TRY_ASSIGN(const auto e, number(b, exponent, call.name() + ".exponent"));
    TRY_ASSIGN(const auto y, b.add(Op::Pow, {x, e}, BinaryAttr{}, call.name()));
    call.give(y);
    return {};
}

constexpr Operator kElementwiseOperators[] = {
    {"aten.relu.default", import_relu},
    {"aten.relu6.default", import_relu6},
    {"aten.hardtanh.default", import_hardtanh},
    {"aten.clamp.default", import_clamp},
    {"aten.clamp_min.default", import_clamp},
    {"aten.clamp_max.default", import_clamp},
    {"aten.hardswish.default", import_unary, Op::HardSwish},
    {"aten.hardsigmoid.default", import_unary, Op::HardSigmoid},
    {"aten.sigmoid.default", import_unary, Op::Sigmoid},
    {"aten.tanh.default", import_unary, Op::Tanh},
    {"aten.silu.default", import_unary, Op::Silu},
    {"aten.mish.default", import_unary, Op::Mish},
    {"aten.gelu.default", import_gelu, Op::Gelu},
    {"aten.leaky_relu.default", import_leaky_relu, Op::LeakyRelu},
    {"aten.prelu.default", import_prelu, Op::Prelu},
    {"aten._prelu_kernel.default", import_prelu, Op::Prelu},
    {"aten.elu.default", import_elu, Op::Elu},
    {"aten.softplus.default", import_softplus, Op::Softplus},
    {"aten.softmax.int", import_softmax, Op::Softmax},
    {"aten._softmax.default", import_softmax, Op::Softmax},
    {"aten.log_softmax.int", import_softmax, Op::LogSoftmax},
    {"aten._log_softmax.default", import_softmax, Op::LogSoftmax},
    {"aten.glu.default", import_glu},
    {"aten.add.Tensor", import_sum, Op::Add},
    {"aten.add.Scalar", import_sum, Op::Add},
    {"aten.sub.Tensor", import_sum, Op::Sub},
    {"aten.sub.Scalar", import_sum, Op::Sub},
    {"aten.rsub.Scalar", import_reverse_sub, Op::Sub},
    {"aten.mul.Tensor", import_binary, Op::Mul},
    {"aten.mul.Scalar", import_binary, Op::Mul},
    {"aten.div.Tensor", import_binary, Op::Div},
    {"aten.div.Scalar", import_binary, Op::Div},
    {"aten.div.Tensor_mode", import_div_mode, Op::Div},
    {"aten.minimum.default", import_binary, Op::Minimum},
    {"aten.maximum.default", import_binary, Op::Maximum},
    {"aten.pow.Tensor_Scalar", import_pow},
    {"aten.square.default", import_unary, Op::Square},
    {"aten.abs.default", import_unary, Op::Abs},
    {"aten.neg.default", import_unary, Op::Neg},
    {"aten.exp.default", import_unary, Op::Exp},
    {"aten.log.default", import_unary, Op::Log},
    {"aten.sqrt.default", import_unary, Op::Sqrt},
    {"aten.rsqrt.default", import_unary, Op::Rsqrt},
    {"aten.reciprocal.default", import_unary, Op::Reciprocal},
    {"aten.floor.default", import_unary, Op::Floor},
    {"aten.ceil.default", import_unary, Op::Ceil},
    {"aten.round.default", import_unary, Op::Round},
    {"aten.sign.default", import_unary, Op::Sign},
    {"aten.sin.default", import_unary, Op::Sin},
    {"aten.cos.default", import_unary, Op::Cos},
    {"aten.erf.default", import_unary, Op::Erf},
};

}  // namespace

std::span<const Operator> elementwise_operators() {
    return kElementwiseOperators;
}

}  // namespace talpa::compiler::import::pt2
