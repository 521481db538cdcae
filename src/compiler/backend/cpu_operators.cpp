#include "compiler/backend/cpu_operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

namespace talpa::compiler {
namespace {

// One node's calls under way: operands as float32 program values, temporaries, the result.
class Call {
  public:
    Call(ProgramBuilder& program, const Graph& graph, const Node& node, const ChannelsFirst& beyond,
         std::function<std::int32_t(ValueId)> value_of)
        : p(program), graph_(graph), node_(node), beyond_(beyond), value_of_(std::move(value_of)) {}

    [[nodiscard]] const Value& value(std::size_t i) const { return graph_[node_.inputs[i]]; }
    [[nodiscard]] const Value& result() const { return graph_[node_.outputs[0]]; }
    [[nodiscard]] bool has(std::size_t i) const { return i < node_.inputs.size() && node_.inputs[i] != kNoValue; }

    /// Operand i in its real type: dequantized if it is quantized.
    std::int32_t operand(std::size_t i) { return real(node_.inputs[i]); }
    std::int32_t real(ValueId id) {
        const Value& v = graph_[id];
        if (!v.quantization) return value_of_(id);
        if (v.is_constant()) return p.constant(DType::Float32, v.shape, real_bytes(v));
        const std::int32_t t = p.tensor(DType::Float32, v.shape);
        call_dequantize(p, value_of_(id), *v.quantization, t);
        return t;
    }
    /// As stored, for what only moves elements.
    std::int32_t raw(std::size_t i) { return value_of_(node_.inputs[i]); }
    std::int32_t raw_result() { return value_of_(node_.outputs[0]); }

    std::int32_t channels_first(std::int32_t from, const Shape& shape) {
        const std::int32_t t = p.tensor(DType::Float32, {shape[0], shape[3], shape[1], shape[2]});
        p.call("aten::permute_copy.out", {from, p.integers({0, 3, 1, 2}), t, t});
        return t;
    }
    std::int32_t temporary(const Shape& shape) { return p.tensor(DType::Float32, shape); }
    [[nodiscard]] Shape first(const Shape& s) const { return {s[0], s[3], s[1], s[2]}; }

    /// Where the result goes: float32 first if it is quantized; `finish` then quantizes.
    std::int32_t out() {
        if (!result().quantization) return value_of_(node_.outputs[0]);
        return real_out_ = p.tensor(DType::Float32, result().shape);
    }
    /// Of an operator that only moves elements: as stored, where the result is stored alike.
    [[nodiscard]] bool stored_alike() const {
        return value(0).quantization == result().quantization && value(0).stored_type() == result().stored_type();
    }
    std::int32_t moved() { return stored_alike() ? raw(0) : operand(0); }
    std::int32_t moved_out() { return stored_alike() ? raw_result() : out(); }
    [[nodiscard]] DType moved_type() const { return stored_alike() ? value(0).stored_type() : DType::Float32; }

    void finish() {
        if (real_out_ >= 0) call_quantize(p, real_out_, *result().quantization, value_of_(node_.outputs[0]));
    }
    /// A fused clamp: the operator writes to what this returns, `clamp` brings it to `to`.
    void clamp(const Clamp& c, std::int32_t from, std::int32_t to) {
        constexpr double kFar = 1e30;
        p.call("aten::clamp.out",
               {from, c.min > -kFar ? p.real(c.min) : p.null(), c.max < kFar ? p.real(c.max) : p.null(), to, to});
    }
    /// A spatial operator on channels-first data: `run(in, out)`.
    template <typename Run>
    void spatial(const Clamp& c, Run run) {
        const std::int32_t in =
            beyond_.from != kNoValue ? real(beyond_.from) : channels_first(operand(0), value(0).shape);
        const Shape shape = first(result().shape);
        // Where the result is wanted channels first, as real numbers, it is made in its place.
        const bool in_place = beyond_.to != kNoValue && !result().quantization;
        std::int32_t made = in_place && !c.any() ? value_of_(beyond_.to) : temporary(shape);
        run(in, made);
        if (c.any()) {
            const std::int32_t clamped = in_place ? value_of_(beyond_.to) : temporary(shape);
            clamp(c, made, clamped);
            made = clamped;
        }
        if (beyond_.to != kNoValue) {
            if (!in_place) call_quantize(p, made, *result().quantization, value_of_(beyond_.to));
            return;
        }
        const std::int32_t to = out();
        p.call("aten::permute_copy.out", {made, p.integers({0, 2, 3, 1}), to, to});
        finish();
    }

    static std::vector<std::uint8_t> real_bytes(const Value& v) {
        const Quantization& q = *v.quantization;
        const auto count = static_cast<std::size_t>(element_count(v.shape));
        std::size_t inner = 1;
        if (!q.per_tensor())
            for (std::size_t d = static_cast<std::size_t>(q.axis) + 1; d < v.shape.size(); ++d)
                inner *= static_cast<std::size_t>(v.shape[d]);
        std::vector<std::uint8_t> bytes(count * 4);
        for (std::size_t i = 0; i < count; ++i) {
            std::int64_t stored = 0;
            const std::uint8_t* from = v.constant->data() + i * dtype_size(q.type);
            switch (q.type) {
                case DType::Int8:
                    stored = static_cast<std::int8_t>(*from);
                    break;
                case DType::UInt8:
                    stored = *from;
                    break;
                case DType::Int16:
                    stored = static_cast<std::int16_t>(from[0] | from[1] << 8);
                    break;
                case DType::Int64:
                    std::memcpy(&stored, from, sizeof stored);
                    break;
                default:
                    stored = static_cast<std::int32_t>(from[0] | std::uint32_t{from[1]} << 8 |
                                                       std::uint32_t{from[2]} << 16 | std::uint32_t{from[3]} << 24);
            }
            const std::size_t c = q.per_tensor() ? 0 : i / inner % q.scales.size();
            const float real = static_cast<float>(stored - q.zero_points[c]) * static_cast<float>(q.scales[c]);
            std::copy_n(reinterpret_cast<const std::uint8_t*>(&real), 4, bytes.data() + 4 * i);
        }
        return bytes;
    }

    ProgramBuilder& p;

  private:
    const Graph& graph_;
    const Node& node_;
    ChannelsFirst beyond_;
    std::function<std::int32_t(ValueId)> value_of_;
    std::int32_t real_out_ = -1;
};

struct Simple {
    Op op;
    const char* name;
};
constexpr Simple kUnary[] = {
    {Op::Sigmoid, "aten::sigmoid.out"},
    {Op::Tanh, "aten::tanh.out"},
    {Op::HardSigmoid, "aten::hardsigmoid.out"},
    {Op::HardSwish, "aten::hardswish.out"},
    {Op::Silu, "aten::silu.out"},
    {Op::Exp, "aten::exp.out"},
    {Op::Log, "aten::log.out"},
    {Op::Sqrt, "aten::sqrt.out"},
    {Op::Rsqrt, "aten::rsqrt.out"},
    {Op::Abs, "aten::abs.out"},
    {Op::Neg, "aten::neg.out"},
    {Op::Reciprocal, "aten::reciprocal.out"},
    {Op::Sin, "aten::sin.out"},
    {Op::Cos, "aten::cos.out"},
    {Op::Erf, "aten::erf.out"},
    {Op::Floor, "aten::floor.out"},
    {Op::Ceil, "aten::ceil.out"},
    {Op::Round, "aten::round.out"},
    {Op::Sign, "aten::sign.out"},
};
constexpr Simple kBinary[] = {
    {Op::Mul, "aten::mul.out"},
    {Op::Div, "aten::div.out"},
    {Op::Minimum, "aten::minimum.out"},
    {Op::Maximum, "aten::maximum.out"},
    {Op::Pow, "aten::pow.Tensor_Tensor_out"},
};

const char* find(std::span<const Simple> table, Op op) {
    for (const Simple& s : table)
        if (s.op == op) return s.name;
    return nullptr;
}

std::vector<std::int64_t> list(const Pair& p) {
    return {p[0], p[1]};
}

bool symmetric(const Edges& e) {
    return e.top == e.bottom && e.left == e.right;
}

bool moves(Op op) {
    return op == Op::Concat || op == Op::Slice || op == Op::Reshape || op == Op::Permute || op == Op::Expand;
}

// ExecuTorch's pools allow a border of half their window.
std::optional<std::string> pool_obstacle(const PoolAttr& a) {
    if (!symmetric(a.padding)) return "its padding differs between opposite sides";
    if (a.padding.top > a.kernel[0] / 2 || a.padding.left > a.kernel[1] / 2)
        return "it is padded by more than half of its window";
    return std::nullopt;
}

// Where ExecuTorch's two functions see a pixel's value: nearest at its corner, bilinear in its middle.
std::optional<std::string> resize_obstacle(const ResizeAttr& a) {
    if (a.mode == ResizeAttr::Mode::Nearest)
        return a.align_corners || a.half_pixel
                   ? std::optional<std::string>("it takes the nearest pixel by aligned corners or half pixels")
                   : std::nullopt;
    if (!a.align_corners && !a.half_pixel) return "it interpolates between the corners of pixels";
    return std::nullopt;
}

bool same_batches(const Shape& a, const Shape& b) {
    return a.size() == b.size() && std::equal(a.begin(), a.end() - 2, b.begin());
}

}  // namespace

void call_quantize(ProgramBuilder& p, std::int32_t from, const Quantization& q, std::int32_t to) {
    p.call("quantized_decomposed::quantize_per_tensor.out",
           {from, p.real(q.scales[0]), p.number(q.zero_points[0]), p.number(q.min), p.number(q.max),
            p.number(scalar_type(q.type)), to, to});
}

void call_dequantize(ProgramBuilder& p, std::int32_t from, const Quantization& q, std::int32_t to) {
    p.call("quantized_decomposed::dequantize_per_tensor.out",
           {from, p.real(q.scales[0]), p.number(q.zero_points[0]), p.number(q.min), p.number(q.max),
            p.number(scalar_type(q.type)), p.null(), to, to});
}

std::optional<std::string> cpu_obstacle(const Graph& graph, const Node& node) {
    if (find(kUnary, node.op) != nullptr || find(kBinary, node.op) != nullptr || moves(node.op)) return std::nullopt;
    switch (node.op) {
        case Op::Conv2d:
        case Op::ConvTranspose2d:
            if (!symmetric(node.as<ConvAttr>().padding)) return "its padding differs between opposite sides";
            return std::nullopt;
        case Op::AvgPool2d:
            if (node.as<PoolAttr>().dilation != Pair{1, 1}) return "its window is dilated";
            return pool_obstacle(node.as<PoolAttr>());
        case Op::MaxPool2d:
            return pool_obstacle(node.as<PoolAttr>());
        case Op::Resize:
            return resize_obstacle(node.as<ResizeAttr>());
        case Op::Gather: {
            const Value& index = graph[node.inputs[1]];
            if (index.shape.size() != 1) return fmt::format("its indices have {} dimensions", index.shape.size());
            if (index.quantization || (index.type != DType::Int64 && index.type != DType::Int32))
                return fmt::format("its indices are {}", dtype_name(index.stored_type()));
            return std::nullopt;
        }
        case Op::MatMul: {
            const Shape &a = graph[node.inputs[0]].shape, &b = graph[node.inputs[1]].shape;
            if (!same_batches(a, b)) return "its operands have different batches";
            return std::nullopt;
        }
        case Op::Pad:
            if (node.as<PadAttr>().mode != PadAttr::Mode::Constant) return "it pads with reflections";
            return std::nullopt;
        case Op::Requantize: {
            const Value &in = graph[node.inputs[0]], &out = graph[node.outputs[0]];
            for (const Value* v : {&in, &out})
                if (v->quantization && !v->quantization->per_tensor()) return "it is quantized per channel";
            return std::nullopt;
        }
        case Op::FullyConnected:
        case Op::Add:
        case Op::Sub:
        case Op::ClampOp:
        case Op::LeakyRelu:
        case Op::Elu:
        case Op::Gelu:
        case Op::Square:
        case Op::Softmax:
        case Op::LogSoftmax:
        case Op::Mean:
        case Op::Sum:
        case Op::ReduceMax:
        case Op::ReduceMin:
        case Op::ArgMax:
        case Op::CumSum:
        case Op::LayerNorm:
        case Op::GroupNorm:
        case Op::Prelu:
            return std::nullopt;
        default:
            return fmt::format("there is no CPU operator for {}", op_name(node.op));
    }
}

host::Result<void> call_cpu_operator(ProgramBuilder& p, const Graph& graph, const Node& node,
                                     const ChannelsFirst& beyond,
                                     const std::function<std::int32_t(ValueId)>& value_of) {
    Call c(p, graph, node, beyond, value_of);
    if (const char* name = find(kUnary, node.op)) {
        const std::int32_t x = c.operand(0), to = c.out();
        p.call(name, {x, to, to});
        c.finish();
        return {};
    }
    const auto clamp_after = [&](const Clamp& clamp, const auto& run) {
        if (!clamp.any()) {
            run(c.out());
        } else {
            const std::int32_t t = c.temporary(c.result().shape);
            run(t);
            c.clamp(clamp, t, c.out());
        }
        c.finish();
    };
    if (const char* name = find(kBinary, node.op)) {
        const std::int32_t a = c.operand(0), b = c.operand(1);
        clamp_after(node.as<BinaryAttr>().clamp, [&](std::int32_t to) { p.call(name, {a, b, to, to}); });
        return {};
    }
    const auto reduce = [&](const char* name, bool with_type) {
        std::vector<std::int64_t> axes(node.as<ReduceAttr>().axes.begin(), node.as<ReduceAttr>().axes.end());
        const std::int32_t x = c.operand(0), to = c.out();
        std::vector<std::int32_t> args{x, p.integers(axes), p.boolean(node.as<ReduceAttr>().keep_dims)};
        if (with_type) args.push_back(p.null());
        args.insert(args.end(), {to, to});
        p.call(name, args);
        c.finish();
    };
    switch (node.op) {
        case Op::Requantize: {
            const Value &in = c.value(0), &out = c.result();
            if (!in.quantization && out.quantization) {
                call_quantize(p, c.raw(0), *out.quantization, c.raw_result());
            } else if (in.quantization && !out.quantization) {
                call_dequantize(p, c.raw(0), *in.quantization, c.raw_result());
            } else {
                const std::int32_t t = c.temporary(in.shape);
                call_dequantize(p, c.raw(0), *in.quantization, t);
                call_quantize(p, t, *out.quantization, c.raw_result());
            }
            return {};
        }
        case Op::Add:
        case Op::Sub: {
            const char* name = node.op == Op::Add ? "aten::add.out" : "aten::sub.out";
            const std::int32_t a = c.operand(0), b = c.operand(1);
            clamp_after(node.as<BinaryAttr>().clamp,
                        [&](std::int32_t to) { p.call(name, {a, b, p.number(1), to, to}); });
            return {};
        }
        case Op::Square: {
            const std::int32_t a = c.operand(0), to = c.out();
            p.call("aten::mul.out", {a, a, to, to});
            c.finish();
            return {};
        }
        case Op::ClampOp: {
            const std::int32_t x = c.operand(0);
            c.clamp(node.as<UnaryAttr>().clamp, x, c.out());
            c.finish();
            return {};
        }
        case Op::LeakyRelu: {
            const std::int32_t x = c.operand(0), to = c.out();
            p.call("aten::leaky_relu.out", {x, p.real(node.as<UnaryAttr>().alpha), to, to});
            c.finish();
            return {};
        }
        case Op::Elu: {
            const std::int32_t x = c.operand(0), to = c.out();
            p.call("aten::elu.out", {x, p.real(node.as<UnaryAttr>().alpha), p.number(1), p.number(1), to, to});
            c.finish();
            return {};
        }
        case Op::Gelu: {
            const std::int32_t x = c.operand(0), to = c.out();
            p.call("aten::gelu.out", {x, p.text(node.as<UnaryAttr>().approximate ? "tanh" : "none"), to, to});
            c.finish();
            return {};
        }
        case Op::Softmax:
        case Op::LogSoftmax: {
            const std::int32_t x = c.operand(0), to = c.out();
            p.call(node.op == Op::Softmax ? "aten::_softmax.out" : "aten::_log_softmax.out",
                   {x, p.number(node.as<AxisAttr>().axis), p.boolean(false), to, to});
            c.finish();
            return {};
        }
        case Op::Mean:
            reduce("aten::mean.out", true);
            return {};
        case Op::Sum:
            reduce("aten::sum.IntList_out", true);
            return {};
        case Op::ReduceMax:
            reduce("aten::amax.out", false);
            return {};
        case Op::ReduceMin:
            reduce("aten::amin.out", false);
            return {};
        case Op::CumSum: {
            const std::int32_t x = c.operand(0), to = c.out();
            p.call("aten::cumsum.out", {x, p.number(node.as<ReduceAttr>().axes[0]), p.null(), to, to});
            c.finish();
            return {};
        }
        case Op::ArgMax: {
            const std::int32_t x = c.operand(0);
            const auto& r = node.as<ReduceAttr>();
            const Value& out = c.result();
            const std::int32_t wide = out.type == DType::Int64 ? c.raw_result() : p.tensor(DType::Int64, out.shape);
            p.call("aten::argmax.out", {x, p.number(r.axes[0]), p.boolean(r.keep_dims), wide, wide});
            if (out.type != DType::Int64) {
                const std::int32_t to = c.raw_result();
                p.call("aten::_to_copy.out", {wide, p.boolean(false), p.null(), to, to});
            }
            return {};
        }
        case Op::FullyConnected: {
            const std::int32_t x = c.operand(0), w = c.operand(1), b = c.has(2) ? c.operand(2) : p.null();
            clamp_after(node.as<FullyConnectedAttr>().clamp,
                        [&](std::int32_t to) { p.call("aten::linear.out", {x, w, b, to, to}); });
            return {};
        }
        case Op::MatMul: {
            const Shape &a = c.value(0).shape, &b = c.value(1).shape, &o = c.result().shape;
            const std::int32_t x = c.operand(0), y = c.operand(1), to = c.out();
            if (a.size() == 2) {
                p.call("aten::mm.out", {x, y, to, to});
            } else if (a.size() == 3) {
                p.call("aten::bmm.out", {x, y, to, to});
            } else {
                // One batch of all of them.
                const auto flat = [](const Shape& s) {
                    std::int64_t count = 1;
                    for (std::size_t d = 0; d + 2 < s.size(); ++d) count *= s[d];
                    return Shape{count, s[s.size() - 2], s.back()};
                };
                const auto viewed = [&](std::int32_t from, const Shape& shape) {
                    const std::int32_t t = c.temporary(shape);
                    p.call("aten::view_copy.out", {from, p.integers(shape), t, t});
                    return t;
                };
                const std::int32_t left = viewed(x, flat(a)), right = viewed(y, flat(b)), made = c.temporary(flat(o));
                p.call("aten::bmm.out", {left, right, made, made});
                p.call("aten::view_copy.out", {made, p.integers(o), to, to});
            }
            c.finish();
            return {};
        }
        case Op::Prelu: {
            // What is positive, and the slope times what is negative.
            const std::int32_t x = c.operand(0), slope = c.operand(1), up = c.temporary(c.value(0).shape),
                               down = c.temporary(c.value(0).shape), sloped = c.temporary(c.result().shape);
            constexpr double kOpen = std::numeric_limits<double>::infinity();
            c.clamp({0, kOpen}, x, up);
            c.clamp({-kOpen, 0}, x, down);
            p.call("aten::mul.out", {down, slope, sloped, sloped});
            clamp_after(node.as<BinaryAttr>().clamp,
                        [&](std::int32_t to) { p.call("aten::add.out", {up, sloped, p.number(1), to, to}); });
            return {};
        }
        case Op::GroupNorm: {
            const auto& attr = node.as<NormAttr>();
            const Shape& s = c.value(0).shape;
            // Channels first, and back.
            std::vector<std::int64_t> first{0, static_cast<std::int64_t>(s.size()) - 1}, last{0};
            Shape turned{s[0], s.back()};
            for (std::size_t d = 1; d + 1 < s.size(); ++d) {
                first.push_back(static_cast<std::int64_t>(d));
                last.push_back(static_cast<std::int64_t>(d) + 1);
                turned.push_back(s[d]);
            }
            last.push_back(1);
            const std::int32_t x = c.operand(0), g = c.has(1) ? c.operand(1) : p.null(),
                               b = c.has(2) ? c.operand(2) : p.null(), in = c.temporary(turned),
                               made = c.temporary(turned), mean = c.temporary({s[0], attr.groups}),
                               deviation = c.temporary({s[0], attr.groups}), to = c.out();
            p.call("aten::permute_copy.out", {x, p.integers(first), in, in});
            p.call("aten::native_group_norm.out",
                   {in, g, b, p.number(s[0]), p.number(s.back()), p.number(element_count(s) / (s[0] * s.back())),
                    p.number(attr.groups), p.real(attr.epsilon), made, mean, deviation,
                    p.tensors({made, mean, deviation})});
            p.call("aten::permute_copy.out", {made, p.integers(last), to, to});
            c.finish();
            return {};
        }
        case Op::LayerNorm: {
            const auto& attr = node.as<NormAttr>();
            const Shape& s = c.value(0).shape;
            std::vector<std::int64_t> normalized;
            Shape reduced = s;
            for (const int axis : attr.axes) {
                normalized.push_back(s[static_cast<std::size_t>(axis)]);
                reduced[static_cast<std::size_t>(axis)] = 1;
            }
            const std::int32_t x = c.operand(0), g = c.has(1) ? c.operand(1) : p.null(),
                               b = c.has(2) ? c.operand(2) : p.null(), to = c.out(), mean = c.temporary(reduced),
                               deviation = c.temporary(reduced);
            p.call("aten::native_layer_norm.out", {x, p.integers(normalized), g, b, p.real(attr.epsilon), to, mean,
                                                   deviation, p.tensors({to, mean, deviation})});
            c.finish();
            return {};
        }
        case Op::Conv2d:
        case Op::ConvTranspose2d: {
            const auto& a = node.as<ConvAttr>();
            const bool transposed = node.op == Op::ConvTranspose2d;
            c.spatial(a.clamp, [&](std::int32_t in, std::int32_t to) {
                // O x KH x KW x I to O x I x KH x KW; transposed operators want the input channels of all groups first,
                // and the output channels of one.
                const Shape& w = c.value(1).shape;
                const auto reordered = [&](std::int32_t from, const Shape& of, const std::vector<std::int64_t>& order) {
                    Shape shape;
                    for (const std::int64_t d : order) shape.push_back(of[static_cast<std::size_t>(d)]);
                    const std::int32_t t = c.temporary(shape);
                    p.call("aten::permute_copy.out", {from, p.integers(order), t, t});
                    return t;
                };
                std::int32_t weight = c.operand(1);
                if (!transposed) {
                    weight = reordered(weight, w, {0, 3, 1, 2});
                } else {
                    const Shape grouped{a.groups, w[0] / a.groups, w[1], w[2], w[3]},
                        joined{a.groups * w[3], w[0] / a.groups, w[1], w[2]};
                    const std::int32_t apart = c.temporary(grouped), together = c.temporary(joined);
                    p.call("aten::view_copy.out", {weight, p.integers(grouped), apart, apart});
                    const std::int32_t turned = reordered(apart, grouped, {0, 4, 1, 2, 3});
                    p.call("aten::view_copy.out", {turned, p.integers(joined), together, together});
                    weight = together;
                }
                p.call("aten::convolution.out",
                       {in, weight, c.has(2) ? c.operand(2) : p.null(), p.integers(list(a.stride)),
                        p.integers({a.padding.top, a.padding.left}), p.integers(list(a.dilation)),
                        p.boolean(transposed), p.integers(list(a.output_padding)), p.number(a.groups), to, to});
            });
            return {};
        }
        case Op::MaxPool2d: {
            const auto& a = node.as<PoolAttr>();
            c.spatial(a.clamp, [&](std::int32_t in, std::int32_t to) {
                const std::int32_t indices = p.tensor(DType::Int64, c.first(c.result().shape));
                p.call("aten::max_pool2d_with_indices.out",
                       {in, p.integers(list(a.kernel)), p.integers(list(a.stride)),
                        p.integers({a.padding.top, a.padding.left}), p.integers(list(a.dilation)), p.boolean(false), to,
                        indices, p.tensors({to, indices})});
            });
            return {};
        }
        case Op::AvgPool2d: {
            const auto& a = node.as<PoolAttr>();
            c.spatial(a.clamp, [&](std::int32_t in, std::int32_t to) {
                p.call("aten::avg_pool2d.out",
                       {in, p.integers(list(a.kernel)), p.integers(list(a.stride)),
                        p.integers({a.padding.top, a.padding.left}), p.boolean(false), p.boolean(a.count_include_pad),
                        a.divisor != 0 ? p.number(a.divisor) : p.null(), to, to});
            });
            return {};
        }
        case Op::Resize: {
            const auto& a = node.as<ResizeAttr>();
            c.spatial({}, [&](std::int32_t in, std::int32_t to) {
                const Shape& s = c.result().shape;
                const std::int32_t size = p.integers({s[1], s[2]});
                if (a.mode == ResizeAttr::Mode::Bilinear)
                    p.call("aten::upsample_bilinear2d.vec_out",
                           {in, size, p.boolean(a.align_corners), p.null(), to, to});
                else
                    p.call("aten::upsample_nearest2d.vec_out", {in, size, p.null(), to, to});
            });
            return {};
        }
        case Op::Pad: {
            const auto& a = node.as<PadAttr>();
            std::vector<std::int64_t> pads;  // last dimension first
            for (std::size_t d = a.before.size(); d-- > 0;) pads.insert(pads.end(), {a.before[d], a.after[d]});
            const std::int32_t x = c.operand(0), to = c.out();
            p.call("aten::constant_pad_nd.out", {x, p.integers(pads), p.real(a.value), to, to});
            c.finish();
            return {};
        }
        case Op::Concat: {
            std::vector<std::int32_t> parts;
            for (std::size_t i = 0; i < node.inputs.size(); ++i) parts.push_back(c.operand(i));
            const std::int32_t list = p.tensors(parts), to = c.out();
            p.call("aten::cat.out", {list, p.number(node.as<AxisAttr>().axis), to, to});
            c.finish();
            return {};
        }
        case Op::Slice: {
            const auto& a = node.as<SliceAttr>();
            std::int32_t x = c.moved();
            const std::int32_t out = c.moved_out();
            Shape shape = c.value(0).shape;
            std::vector<std::size_t> cut;
            for (std::size_t d = 0; d < shape.size(); ++d)
                if (a.steps[d] != 1 || a.starts[d] != 0 || a.ends[d] != shape[d]) cut.push_back(d);
            if (cut.empty()) p.call("aten::clone.out", {x, p.null(), out, out});
            for (const std::size_t d : cut) {
                shape[d] = c.result().shape[d];
                const std::int32_t to = d == cut.back() ? out : p.tensor(c.moved_type(), shape);
                p.call("aten::slice_copy.Tensor_out", {x, p.number(static_cast<std::int64_t>(d)), p.number(a.starts[d]),
                                                       p.number(a.ends[d]), p.number(a.steps[d]), to, to});
                x = to;
            }
            c.finish();
            return {};
        }
        case Op::Reshape: {
            const std::int32_t x = c.moved(), to = c.moved_out();
            p.call("aten::view_copy.out", {x, p.integers(c.result().shape), to, to});
            c.finish();
            return {};
        }
        case Op::Permute: {
            const auto& order = node.as<PermuteAttr>().order;
            const std::int32_t x = c.moved(), to = c.moved_out();
            p.call("aten::permute_copy.out",
                   {x, p.integers(std::vector<std::int64_t>(order.begin(), order.end())), to, to});
            c.finish();
            return {};
        }
        case Op::Expand: {
            const std::int32_t x = c.moved(), to = c.moved_out();
            p.call("aten::expand_copy.out", {x, p.integers(c.result().shape), p.boolean(false), to, to});
            c.finish();
            return {};
        }
        case Op::Gather: {
            const std::int32_t x = c.moved(), index = c.raw(1), to = c.moved_out();
            p.call("aten::index_select.out", {x, p.number(node.as<AxisAttr>().axis), index, to, to});
            c.finish();
            return {};
        }
        default:
            return host::failure(ErrorCode::Internal, "{} has no CPU operator", op_name(node.op));
    }
}

}  // namespace talpa::compiler
