// Elementwise float kernels: one function an operator, in a table.
#include <algorithm>
#include <array>
#include <cmath>

#include "compiler/floats/kernel.h"

namespace talpa::compiler {

namespace {

using Unary = float (*)(float x, const UnaryAttr& attr);

float sigmoid(float x) {
    return 1.0f / (1.0f + std::exp(-x));
}
float softplus(float x) {
    return x > 20.0f ? x : std::log1p(std::exp(x));
}
float hard_sigmoid(float x) {
    return std::clamp(x + 3.0f, 0.0f, 6.0f) / 6.0f;
}
float gelu(float x, const UnaryAttr& attr) {
    constexpr float kRootTwoOverPi = 0.7978845608f;
    if (attr.approximate) return 0.5f * x * (1.0f + std::tanh(kRootTwoOverPi * (x + 0.044715f * x * x * x)));
    return 0.5f * x * (1.0f + std::erf(x * 0.70710678f));
}

struct UnaryEntry {
    Op op;
    Unary function;
};
constexpr std::array<UnaryEntry, 25> kUnary{{
    {Op::ClampOp,
     [](float x, const UnaryAttr& a) {
         return std::clamp(x, static_cast<float>(a.clamp.min), static_cast<float>(a.clamp.max));
     }},
    {Op::LeakyRelu, [](float x, const UnaryAttr& a) { return x >= 0 ? x : x * static_cast<float>(a.alpha); }},
    {Op::Elu, [](float x, const UnaryAttr& a) { return x > 0 ? x : static_cast<float>(a.alpha) * std::expm1(x); }},
    {Op::Sigmoid, [](float x, const UnaryAttr&) { return sigmoid(x); }},
    {Op::Tanh, [](float x, const UnaryAttr&) { return std::tanh(x); }},
    {Op::HardSigmoid, [](float x, const UnaryAttr&) { return hard_sigmoid(x); }},
    {Op::HardSwish, [](float x, const UnaryAttr&) { return x * hard_sigmoid(x); }},
    {Op::Silu, [](float x, const UnaryAttr&) { return x * sigmoid(x); }},
    {Op::Gelu, gelu},
    {Op::Exp, [](float x, const UnaryAttr&) { return std::exp(x); }},
    {Op::Log, [](float x, const UnaryAttr&) { return std::log(x); }},
    {Op::Sqrt, [](float x, const UnaryAttr&) { return std::sqrt(x); }},
    {Op::Rsqrt, [](float x, const UnaryAttr&) { return 1.0f / std::sqrt(x); }},
    {Op::Abs, [](float x, const UnaryAttr&) { return std::fabs(x); }},
    {Op::Neg, [](float x, const UnaryAttr&) { return -x; }},
    {Op::Reciprocal, [](float x, const UnaryAttr&) { return 1.0f / x; }},
    {Op::Square, [](float x, const UnaryAttr&) { return x * x; }},
    {Op::Softplus, [](float x, const UnaryAttr&) { return softplus(x); }},
    {Op::Mish, [](float x, const UnaryAttr&) { return x * std::tanh(softplus(x)); }},
    {Op::Sin, [](float x, const UnaryAttr&) { return std::sin(x); }},
    {Op::Cos, [](float x, const UnaryAttr&) { return std::cos(x); }},
    {Op::Erf, [](float x, const UnaryAttr&) { return std::erf(x); }},
    {Op::Floor, [](float x, const UnaryAttr&) { return std::floor(x); }},
    {Op::Ceil, [](float x, const UnaryAttr&) { return std::ceil(x); }},
    {Op::Round, [](float x, const UnaryAttr&) { return std::nearbyint(x); }},
}};

template <typename F>
void combine(KernelCall& call, F&& f) {
    const auto& clamp = call.node.as<BinaryAttr>().clamp;
    const float least = low(clamp), most = high(clamp);
    const auto &a = call.inputs[0], &b = call.inputs[1];
    auto& out = call.output;
    const auto put = [&](std::size_t i, float v) { out[i] = v < least ? least : v > most ? most : v; };
    if (a.size() == out.size() && b.size() == out.size()) {
        for (std::size_t i = 0; i < out.size(); ++i) put(i, f(a[i], b[i]));
        return;
    }
    std::vector<std::int64_t> from_b(out.size());
    for_each_strided(call.out_shape(), broadcast_strides(call.shape(1), call.out_shape()), 0,
                     [&](std::int64_t i, std::int64_t offset) { from_b[static_cast<std::size_t>(i)] = offset; });
    for_each_strided(call.out_shape(), broadcast_strides(call.shape(0), call.out_shape()), 0,
                     [&](std::int64_t i, std::int64_t offset) {
                         const auto at = static_cast<std::size_t>(i);
                         put(at, f(a[static_cast<std::size_t>(offset)], b[static_cast<std::size_t>(from_b[at])]));
                     });
}

}  // namespace

void unary(KernelCall& call) {
    static const UnaryAttr kNone;
    const auto* attr = std::get_if<UnaryAttr>(&call.node.attributes);
    if (call.node.op == Op::Sign) {
        for (std::size_t i = 0; i < call.output.size(); ++i) {
            const float x = call.inputs[0][i];
            call.output[i] = static_cast<float>((x > 0) - (x < 0));
        }
        return;
    }
    const auto* entry = std::ranges::find(kUnary, call.node.op, &UnaryEntry::op);
    for (std::size_t i = 0; i < call.output.size(); ++i)
        call.output[i] = entry->function(call.inputs[0][i], attr != nullptr ? *attr : kNone);
}

void binary(KernelCall& call) {
    switch (call.node.op) {
        case Op::Add:
            return combine(call, [](float a, float b) { return a + b; });
        case Op::Sub:
            return combine(call, [](float a, float b) { return a - b; });
        case Op::Mul:
            return combine(call, [](float a, float b) { return a * b; });
        case Op::Div:
            return combine(call, [](float a, float b) { return a / b; });
        case Op::Minimum:
            return combine(call, [](float a, float b) { return a < b ? a : b; });
        case Op::Maximum:
            return combine(call, [](float a, float b) { return a > b ? a : b; });
        default:
            return combine(call, [](float a, float b) { return std::pow(a, b); });
    }
}

void prelu(KernelCall& call) {
    const auto channels = call.inputs[1].size();
    const auto& clamp = call.node.as<BinaryAttr>().clamp;
    for (std::size_t i = 0; i < call.output.size(); ++i) {
        const float x = call.inputs[0][i];
        call.output[i] = std::clamp(x >= 0 ? x : x * call.inputs[1][i % channels], low(clamp), high(clamp));
    }
}

}  // namespace talpa::compiler
