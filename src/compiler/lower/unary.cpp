// Functions of one number. 8 bits: a table of 256, computed as the framework computes in float32. 16 bits: a table of
// 512 points, between which the hardware interpolates. Clamps and changes of scale that need no table. (ethos-u65,
// sections 6.2 and 9.7)
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compiler/lower/lowerer.h"

namespace talpa::compiler {
namespace {

float sigmoid(float x) {
    return 1.0f / (1.0f + std::exp(-x));
}
float relu6(float x) {
    return std::min(std::max(x, 0.0f), 6.0f);
}
float softplus(float x, float beta, float threshold) {
    return x * beta > threshold ? x : std::log1p(std::exp(x * beta)) / beta;
}

float evaluate(Op op, const UnaryAttr& a, float x) {
    const auto alpha = static_cast<float>(a.alpha), beta = static_cast<float>(a.beta);
    switch (op) {
        case Op::ClampOp:
            return std::min(std::max(x, static_cast<float>(a.clamp.min)), static_cast<float>(a.clamp.max));
        case Op::LeakyRelu:
            return x > 0 ? x : x * alpha;
        case Op::Elu:
            return x > 0 ? x : alpha * std::expm1(x);
        case Op::Sigmoid:
            return sigmoid(x);
        case Op::Tanh:
            return std::tanh(x);
        case Op::HardSigmoid:
            return relu6(x + 3.0f) / 6.0f;
        case Op::HardSwish:
            return x * relu6(x + 3.0f) / 6.0f;
        case Op::Silu:
            return x / (1.0f + std::exp(-x));
        case Op::Gelu:
            return a.approximate ? 0.5f * x * (1.0f + std::tanh(0.7978845608f * (x + 0.044715f * x * x * x)))
                                 : x * 0.5f * (1.0f + std::erf(x * 0.70710678118654752440f));
        case Op::Exp:
            return std::exp(x);
        case Op::Log:
            return std::log(x);
        case Op::Sqrt:
            return std::sqrt(x);
        case Op::Rsqrt:
            return 1.0f / std::sqrt(x);
        case Op::Abs:
            return std::abs(x);
        case Op::Neg:
            return -x;
        case Op::Reciprocal:
            return 1.0f / x;
        case Op::Square:
            return x * x;
        case Op::Softplus:
            return softplus(x, beta == 0 ? 1.0f : beta, alpha == 0 ? 20.0f : alpha);
        case Op::Mish:
            return x * std::tanh(softplus(x, 1.0f, 20.0f));
        case Op::Sin:
            return std::sin(x);
        case Op::Cos:
            return std::cos(x);
        case Op::Erf:
            return std::erf(x);
        case Op::Floor:
            return std::floor(x);
        case Op::Ceil:
            return std::ceil(x);
        case Op::Round:
            return std::nearbyint(x);
        case Op::Sign:
            return x > 0 ? 1.0f : x < 0 ? -1.0f : 0.0f;
        default:
            return x;
    }
}

bool same_grid(const Value& a, const Value& b) {
    return a.quantization->scales == b.quantization->scales &&
           a.quantization->zero_points == b.quantization->zero_points && a.stored_type() == b.stored_type();
}

const UnaryAttr& attributes_of(const Node& node) {
    static const UnaryAttr kNone;
    const auto* attr = std::get_if<UnaryAttr>(&node.attributes);
    return attr != nullptr ? *attr : kNone;
}

// Integers in common units instead of reals (section 9.7).
std::int32_t abs_entry(int stored, const Value& in, const Value& out, Arithmetic arithmetic) {
    const Quantization &qi = *in.quantization, &qo = *out.quantization;
    const npu::Scale s = to_scale(qi.scales[0] / qo.scales[0], arithmetic);
    const std::int64_t v =
        apply_scale(std::abs(stored - qi.zero_points[0]), s, rounding_of(arithmetic)) + qo.zero_points[0];
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(v, qo.min, qo.max));
}

// 16 bits: a point every 128 numbers, and one beyond the last.
constexpr std::int32_t kPoints = 512, kBetween = 128;
std::vector<std::int32_t> points_of(Op op, const UnaryAttr& attr, const Value& in, const Value& out) {
    std::vector<std::int32_t> points(kPoints + 1);
    const auto scale = static_cast<float>(in.quantization->scales[0]);
    for (std::int32_t i = 0; i <= kPoints; ++i) {
        const float x = static_cast<float>(i * kBetween - 32768 - in.quantization->zero_points[0]) * scale;
        points[static_cast<std::size_t>(i)] = real_to_stored(evaluate(op, attr, x), *out.quantization);
    }
    return points;
}
std::int32_t slope_at(const std::vector<std::int32_t>& points, std::size_t i) {
    return std::clamp(points[i + 1] - points[i], -32768, 32767);
}

std::int32_t interpolation_error(Op op, const UnaryAttr& attr, const Value& in, const Value& out) {
    const auto points = points_of(op, attr, in, out);
    const auto scale = static_cast<float>(in.quantization->scales[0]);
    std::int32_t most = 0;
    for (std::int32_t n = -32768; n <= 32767; ++n) {
        const auto i = static_cast<std::size_t>((n + 32768) / kBetween);
        const std::int32_t got = points[i] + ((slope_at(points, i) * (n & (kBetween - 1)) + kBetween / 2) >> 7);
        const float x = static_cast<float>(n - in.quantization->zero_points[0]) * scale;
        most = std::max(most, std::abs(got - real_to_stored(evaluate(op, attr, x), *out.quantization)));
    }
    return most;
}

host::Result<void> lower_interpolated(Lowerer& l, const Node& node, const UnaryAttr& attr) {
    const Graph& graph = l.graph();
    const Value &in = graph[node.inputs[0]], &out = graph[node.outputs[0]];
    const auto points = points_of(node.op, attr, in, out);
    auto table = std::make_shared<Table>();
    for (std::size_t i = 0; i < kPoints; ++i)
        for (const std::int32_t n : {points[i], slope_at(points, i)}) {
            table->push_back(static_cast<std::uint8_t>(n));
            table->push_back(static_cast<std::uint8_t>(n >> 8));
        }
    const npu::ElementType type = element_type(in.stored_type());
    npu::Operation op = plain_operation(npu::OpKind::Max, type, type);
    op.activation.function = npu::Activation::Function::Lut;
    Operand value = l.operand(node.inputs[0], in.shape), low;
    value.zero_point = 0;
    low.type = type;
    low.is_scalar = true;
    low.scalar = static_cast<std::int32_t>(type.min());
    return l.elementwise(op, in.shape, l.home(node.outputs[0]), 0, value, low, std::move(table));
}

}  // namespace

std::optional<std::string> unary_obstacle(const Graph& graph, const Node& node) {
    const Value &in = graph[node.inputs[0]], &out = graph[node.outputs[0]];
    if (node.op == Op::ClampOp) return std::nullopt;
    if (in.stored_type() == DType::Int16 && out.stored_type() == DType::Int16) {
        // The share of the range that interpolation may be wrong by; a reciprocal near 0 is what does not pass.
        constexpr std::int32_t kMostSteps = 64;
        const UnaryAttr& attr = attributes_of(node);
        const std::int32_t off = interpolation_error(node.op, attr, in, out);
        if (off <= kMostSteps) return std::nullopt;
        return fmt::format(
            "between the 512 points of a 16-bit table it would be wrong by up to {} of 65536 steps, at "
            "most {} pass (8-bit activations have exact tables)",
            off, kMostSteps);
    }
    if (dtype_size(in.stored_type()) != 1 || dtype_size(out.stored_type()) != 1)
        return fmt::format("it is a function of {} numbers to {}: a table keeps the width",
                           dtype_name(in.stored_type()), dtype_name(out.stored_type()));
    return std::nullopt;
}

host::Result<void> lower_unary(Lowerer& l, const Node& node) {
    const Graph& graph = l.graph();
    const Value &in = graph[node.inputs[0]], &out = graph[node.outputs[0]];
    const npu::ElementType from = element_type(in.stored_type()), to = element_type(out.stored_type());
    const UnaryAttr& attr = attributes_of(node);
    if (node.op == Op::ClampOp && (same_grid(in, out) || from.bytes != 1)) {
        const Limits limits = limits_of(out, attr.clamp);
        if (!same_grid(in, out))
            return l.rescale(in.shape, l.operand(node.inputs[0], in.shape), l.home(node.outputs[0]), to,
                             out.quantization->zero_points[0],
                             l.scale(in.quantization->scales[0] / out.quantization->scales[0]), limits);
        npu::Operation op = plain_operation(npu::OpKind::Max, from, to);
        set_limits(op, to, limits);
        Operand low = l.operand(node.inputs[0], in.shape);
        const Operand value = low;
        low.is_scalar = true;
        low.scalar = limits.min;
        return l.elementwise(op, in.shape, l.home(node.outputs[0]), 0, value, low);
    }
    if (from.bytes == 2) return lower_interpolated(l, node, attr);
    std::array<std::int32_t, 256> table{};
    for (int i = 0; i < 256; ++i) {
        const int stored = from.is_signed ? i - 128 : i;
        const auto& q = *in.quantization;
        const float x = static_cast<float>(stored - q.zero_points[0]) * static_cast<float>(q.scales[0]);
        table[static_cast<std::size_t>(i)] = node.op == Op::Abs
                                                 ? abs_entry(stored, in, out, l.arithmetic())
                                                 : real_to_stored(evaluate(node.op, attr, x), *out.quantization);
    }
    return l.map_bytes(in.shape, l.place(node.inputs[0]), from, l.home(node.outputs[0]), to, table);
}

std::optional<std::string> prelu_obstacle(const Graph& graph, const Node& node) {
    const Value& in = graph[node.inputs[0]];
    if (dtype_size(in.stored_type()) != 1) return "its operands are 16-bit numbers";
    const Value& slope = graph[node.inputs[1]];
    if (!slope.is_constant() || !slope.quantization || element_count(slope.shape) != 1)
        return "its slope is no single constant";
    return std::nullopt;
}

// With one slope it is a function of one number.
host::Result<void> lower_prelu(Lowerer& l, const Node& node) {
    const Graph& graph = l.graph();
    const Value &in = graph[node.inputs[0]], &out = graph[node.outputs[0]], &slope = graph[node.inputs[1]];
    const Operand s = l.operand(node.inputs[1], {1});
    UnaryAttr attr;
    attr.alpha = static_cast<double>(s.scalar - slope.quantization->zero_points[0]) * slope.quantization->scales[0];
    std::array<std::int32_t, 256> table{};
    const npu::ElementType from = element_type(in.stored_type());
    const Limits limits = limits_of(out, node.as<BinaryAttr>().clamp);
    for (int i = 0; i < 256; ++i) {
        const int stored = from.is_signed ? i - 128 : i;
        const auto& q = *in.quantization;
        const float x = static_cast<float>(stored - q.zero_points[0]) * static_cast<float>(q.scales[0]);
        table[static_cast<std::size_t>(i)] =
            std::clamp(real_to_stored(evaluate(Op::LeakyRelu, attr, x), *out.quantization), limits.min, limits.max);
    }
    return l.map_bytes(in.shape, l.place(node.inputs[0]), from, l.home(node.outputs[0]),
                       element_type(out.stored_type()), table);
}

}  // namespace talpa::compiler
