// Operators that take each element by itself. (pte-format, section 6)
#include <limits>

#include "compiler/backend/cpu_call.h"

namespace talpa::compiler {
namespace {

void call_unary(CpuCall& c, const char* name) {
    const std::int32_t x = c.operand(0), to = c.out();
    c.p.call(name, {x, to, to});
    c.finish();
}

void call_clamp(CpuCall& c, const char*) {
    const std::int32_t x = c.operand(0);
    c.clamp(c.as<UnaryAttr>().clamp, x, c.out());
    c.finish();
}

void call_square(CpuCall& c, const char*) {
    const std::int32_t x = c.operand(0), to = c.out();
    c.p.call("aten::mul.out", {x, x, to, to});
    c.finish();
}

void call_leaky_relu(CpuCall& c, const char*) {
    const std::int32_t x = c.operand(0), to = c.out();
    c.p.call("aten::leaky_relu.out", {x, c.p.real(c.as<UnaryAttr>().alpha), to, to});
    c.finish();
}

void call_elu(CpuCall& c, const char*) {
    const std::int32_t x = c.operand(0), to = c.out();
    c.p.call("aten::elu.out", {x, c.p.real(c.as<UnaryAttr>().alpha), c.p.number(1), c.p.number(1), to, to});
    c.finish();
}

void call_gelu(CpuCall& c, const char*) {
    const std::int32_t x = c.operand(0), to = c.out();
    c.p.call("aten::gelu.out", {x, c.p.text(c.as<UnaryAttr>().approximate ? "tanh" : "none"), to, to});
    c.finish();
}

void call_binary(CpuCall& c, const char* name) {
    const std::int32_t a = c.operand(0), b = c.operand(1);
    c.clamped(c.as<BinaryAttr>().clamp, [&](std::int32_t to) { c.p.call(name, {a, b, to, to}); });
}

/// Add and sub have a factor of the second operand.
void call_sum(CpuCall& c, const char* name) {
    const std::int32_t a = c.operand(0), b = c.operand(1);
    c.clamped(c.as<BinaryAttr>().clamp, [&](std::int32_t to) { c.p.call(name, {a, b, c.p.number(1), to, to}); });
}

/// What is positive, and the slope times what is negative.
void call_prelu(CpuCall& c, const char*) {
    const Shape& shape = c.value(0).shape;
    const std::int32_t x = c.operand(0), slope = c.operand(1), up = c.temporary(shape), down = c.temporary(shape),
                       sloped = c.temporary(c.result().shape);
    constexpr double kOpen = std::numeric_limits<double>::infinity();
    c.clamp({0, kOpen}, x, up);
    c.clamp({-kOpen, 0}, x, down);
    c.p.call("aten::mul.out", {down, slope, sloped, sloped});
    c.clamped(c.as<BinaryAttr>().clamp,
              [&](std::int32_t to) { c.p.call("aten::add.out", {up, sloped, c.p.number(1), to, to}); });
}

constexpr CpuOperator kElementwise[] = {
    {Op::Sigmoid, call_unary, "aten::sigmoid.out"},
    {Op::Tanh, call_unary, "aten::tanh.out"},
    {Op::HardSigmoid, call_unary, "aten::hardsigmoid.out"},
    {Op::HardSwish, call_unary, "aten::hardswish.out"},
    {Op::Silu, call_unary, "aten::silu.out"},
    {Op::Exp, call_unary, "aten::exp.out"},
    {Op::Log, call_unary, "aten::log.out"},
    {Op::Sqrt, call_unary, "aten::sqrt.out"},
    {Op::Rsqrt, call_unary, "aten::rsqrt.out"},
    {Op::Abs, call_unary, "aten::abs.out"},
    {Op::Neg, call_unary, "aten::neg.out"},
    {Op::Reciprocal, call_unary, "aten::reciprocal.out"},
    {Op::Sin, call_unary, "aten::sin.out"},
    {Op::Cos, call_unary, "aten::cos.out"},
    {Op::Erf, call_unary, "aten::erf.out"},
    {Op::Floor, call_unary, "aten::floor.out"},
    {Op::Ceil, call_unary, "aten::ceil.out"},
    {Op::Round, call_unary, "aten::round.out"},
    {Op::Sign, call_unary, "aten::sign.out"},
    {Op::ClampOp, call_clamp},
    {Op::Square, call_square},
    {Op::LeakyRelu, call_leaky_relu},
    {Op::Elu, call_elu},
    {Op::Gelu, call_gelu},
    {Op::Mul, call_binary, "aten::mul.out"},
    {Op::Div, call_binary, "aten::div.out"},
    {Op::Minimum, call_binary, "aten::minimum.out"},
    {Op::Maximum, call_binary, "aten::maximum.out"},
    {Op::Pow, call_binary, "aten::pow.Tensor_Tensor_out"},
    {Op::Add, call_sum, "aten::add.out"},
    {Op::Sub, call_sum, "aten::sub.out"},
    {Op::Prelu, call_prelu},
};

}  // namespace

std::span<const CpuOperator> cpu_elementwise_operators() {
    return kElementwise;
}

}  // namespace talpa::compiler
