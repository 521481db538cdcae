// Activations, arithmetic, and quantization (model-formats, sections 4.2 and 4.3).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/graph/constant.h"
#include "compiler/graph/infer.h"
#include "compiler/import/onnx/call.h"
#include "compiler/import/quantization.h"

namespace talpa::compiler::import::onnx {
namespace {

using host::failure;
using host::Result;

constexpr double kOpen = std::numeric_limits<double>::infinity();

Result<void> import_unary(Call& call, Op op) {
    TRY_ASSIGN(const auto x, call.operand(0));
    call.ignore({"consumed_inputs"});
    return call.make(op, {x}, UnaryAttr{});
}

Result<void> import_relu(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.operand(0));
    call.ignore({"consumed_inputs"});
    return call.make(Op::ClampOp, {x}, UnaryAttr{.clamp = {0, kOpen}});
}

Result<void> import_clip(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.operand(0));
    Clamp clamp;
    if (call.opset < 11) {
        TRY_ASSIGN(clamp.min, call.real("min", -kOpen));
        TRY_ASSIGN(clamp.max, call.real("max", kOpen));
    }
    for (const std::size_t i : {1u, 2u}) {
        if (!call.has(i)) continue;
        TRY_ASSIGN(const auto bound, call.real_constants(i));
        if (bound.size() != 1) return failure(ErrorCode::InvalidProgram, "a bound of {} numbers", bound.size());
        (i == 1 ? clamp.min : clamp.max) = static_cast<double>(bound[0]);
    }
    call.ignore({"consumed_inputs"});
    clamp.min = std::min(clamp.min, clamp.max);  // as min(max(x, low), high) has it
    return call.make(Op::ClampOp, {x}, UnaryAttr{.clamp = clamp});
}

Result<void> import_alpha(Call& call, Op op) {
    TRY_ASSIGN(const auto x, call.operand(0));
    TRY_ASSIGN(const auto alpha, call.real("alpha", op == Op::LeakyRelu ? static_cast<double>(0.01F) : 1.0));
    call.ignore({"consumed_inputs"});
    return call.make(op, {x}, UnaryAttr{.alpha = alpha});
}

Result<void> import_softplus(Call& call, Op op) {
    TRY_ASSIGN(const auto x, call.operand(0));
    return call.make(op, {x}, UnaryAttr{.alpha = 20, .beta = 1});
}

Result<void> import_gelu(Call& call, Op op) {
    TRY_ASSIGN(const auto x, call.operand(0));
    TRY_ASSIGN(const auto form, call.text("approximate", "none"));
    return call.make(op, {x}, UnaryAttr{.approximate = form == "tanh"});
}

Result<ValueId> number(Builder& b, double value, const std::string& name) {
    const float v = static_cast<float>(value);
    return b.value(float_constant(name, {}, {&v, 1}));
}

/// max(0, min(1, alpha x + beta)); torch's has alpha 1/6 and beta 1/2.
Result<void> import_hard_sigmoid(Call& call, Op op) {
    Builder& b = call.b;
    TRY_ASSIGN(auto x, call.operand(0));
    TRY_ASSIGN(const auto alpha, call.real("alpha", static_cast<double>(0.2F)));
    TRY_ASSIGN(const auto beta, call.real("beta", 0.5));
    if (std::abs(alpha - 1.0 / 6) < 1e-6 && beta == 0.5) return call.make(op, {x}, UnaryAttr{});
    TRY_ASSIGN(const auto factor, number(b, alpha, call.name() + ".alpha"));
    TRY_ASSIGN(const auto offset, number(b, beta, call.name() + ".beta"));
    TRY_ASSIGN(x, b.add(Op::Mul, {x, factor}, BinaryAttr{}, call.name() + ".scaled"));
    TRY_ASSIGN(x, b.add(Op::Add, {x, offset}, BinaryAttr{}, call.name() + ".moved"));
    return call.make(Op::ClampOp, {x}, UnaryAttr{.clamp = {0, 1}});
}

Result<void> import_binary(Call& call, Op op) {
    TRY_ASSIGN(const auto x, call.operand(0));
    TRY_ASSIGN(const auto y, call.operand(1));
    if (call.attribute("broadcast") != nullptr || call.attribute("axis") != nullptr)
        return failure(ErrorCode::NotSupported, "broadcasting along an axis (opset 6 and older)");
    return call.make(op, {x, y}, BinaryAttr{});
}

Result<void> import_variadic(Call& call, Op op) {
    TRY_ASSIGN(auto x, call.operand(0));
    for (std::size_t i = 1; i < call.operand_count(); ++i) {
        TRY_ASSIGN(const auto y, call.operand(i));
        TRY_ASSIGN(x, call.b.add(op, {x, y}, BinaryAttr{}, call.name()));
    }
    call.give(x);
    return {};
}

/// Scale, zero point and type of QuantizeLinear and DequantizeLinear, of a tensor of `shape`.
Result<Quantization> read_quantization(Call& call, const Shape& shape, DType usual) {
    Builder& b = call.b;
    TRY_ASSIGN(const auto scales, call.real_constants(1));
    TRY_ASSIGN(const auto axis, call.integer("axis", 1));
    TRY_ASSIGN(const auto block, call.integer("block_size", 0));
    call.ignore({"saturate", "output_dtype", "precision"});
    if (block != 0) return failure(ErrorCode::NotSupported, "quantization in blocks");
    FoundQuantization found{.type = usual, .scales = {scales.begin(), scales.end()}};
    if (call.has(2)) {
        TRY_ASSIGN(const Bound zero, call.bound(2));
        found.type = b[zero.id].stored_type();
        TRY_ASSIGN(found.zero_points, call.constants(2));
    }
    TRY_ASSIGN(const auto scale_id, call.operand(1));
    if (!b[scale_id].shape.empty() && scales.size() > 1) {
        TRY_ASSIGN(found.axis, positive_axis(axis, shape.size()));
    }
    return quantization_of(found, shape);
}

Result<void> import_quantize(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.operand(0));
    const Shape shape = call.b[x].shape;
    TRY_ASSIGN(const auto q, read_quantization(call, shape, DType::UInt8));
    TRY_ASSIGN(const auto id, quantize(call.b, x, q, call.name()));
    call.give(Bound{id, true});
    return {};
}

Result<void> import_dequantize(Call& call, Op) {
    TRY_ASSIGN(const Bound from, call.bound(0));
    const Shape shape = call.b[from.id].shape;
    TRY_ASSIGN(const auto q, read_quantization(call, shape, call.b[from.id].stored_type()));
    TRY_ASSIGN(const auto id, dequantize(call.b, from.id, q));
    call.give(Bound{id, false});
    return {};
}

constexpr Operator kElementwiseOperators[] = {
    {"Relu", import_relu},
    {"Clip", import_clip},
    {"LeakyRelu", import_alpha, Op::LeakyRelu},
    {"Elu", import_alpha, Op::Elu},
    {"HardSigmoid", import_hard_sigmoid, Op::HardSigmoid},
    {"HardSwish", import_unary, Op::HardSwish},
    {"Gelu", import_gelu, Op::Gelu},
    {"PRelu", import_binary, Op::Prelu},
    {"Sigmoid", import_unary, Op::Sigmoid},
    {"Tanh", import_unary, Op::Tanh},
    {"Exp", import_unary, Op::Exp},
    {"Log", import_unary, Op::Log},
    {"Sqrt", import_unary, Op::Sqrt},
    {"Abs", import_unary, Op::Abs},
    {"Neg", import_unary, Op::Neg},
    {"Floor", import_unary, Op::Floor},
    {"Ceil", import_unary, Op::Ceil},
    {"Round", import_unary, Op::Round},
    {"Sign", import_unary, Op::Sign},
    {"Sin", import_unary, Op::Sin},
    {"Cos", import_unary, Op::Cos},
    {"Erf", import_unary, Op::Erf},
    {"Reciprocal", import_unary, Op::Reciprocal},
    {"Softplus", import_softplus, Op::Softplus},
    {"Mish", import_unary, Op::Mish},
    {"Add", import_binary, Op::Add},
    {"Sub", import_binary, Op::Sub},
    {"Mul", import_binary, Op::Mul},
    {"Div", import_binary, Op::Div},
    {"Pow", import_binary, Op::Pow},
    {"Max", import_variadic, Op::Maximum},
    {"Min", import_variadic, Op::Minimum},
    {"Sum", import_variadic, Op::Add},
    {"QuantizeLinear", import_quantize},
    {"DequantizeLinear", import_dequantize},
};

}  // namespace

std::span<const Operator> elementwise_operators() {
    return kElementwiseOperators;
}

}  // namespace talpa::compiler::import::onnx
