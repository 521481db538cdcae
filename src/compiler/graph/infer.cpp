#include "compiler/graph/infer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/core/checked_math.h"
#include "compiler/graph/ops.h"

namespace talpa::compiler {
namespace {

using host::Result;

constexpr std::int64_t kLargest = std::int64_t{1} << 40;  // model-formats, section 0
constexpr std::size_t kMaxRank = 8;

std::unexpected<host::Error> wrong(std::string what) {
    return std::unexpected(host::Error(ErrorCode::InvalidArgument, std::move(what)));
}

/// Numbers among the attributes that nothing can be computed with.
Result<void> check_numbers(const Attributes& attributes) {
    const auto need = [](double v, const char* what) -> Result<void> {
        if (std::isfinite(v)) return {};
        return wrong(fmt::format("its {} is {}", what, std::isnan(v) ? "not a number" : "infinite"));
    };
    const auto need_clamp = [](const Clamp& c) -> Result<void> {
        if (c.min <= c.max) return {};
        return wrong(fmt::format("it clamps to {} to {}", c.min, c.max));
    };
    if (const auto* u = std::get_if<UnaryAttr>(&attributes)) {
        TRY(need(u->alpha, "alpha"));
        TRY(need(u->beta, "beta"));
        return need_clamp(u->clamp);
    }
    if (const auto* a = std::get_if<AxisAttr>(&attributes)) {
        TRY(need(a->beta, "beta"));
        if (!(a->beta > 0)) return wrong(fmt::format("its beta is {}: it must be positive", a->beta));
    }
    if (const auto* n = std::get_if<NormAttr>(&attributes)) return need(n->epsilon, "epsilon");
    if (const auto* pad = std::get_if<PadAttr>(&attributes); pad != nullptr && std::isnan(pad->value))
        return wrong("it pads with what is not a number");
    if (const auto* pool = std::get_if<PoolAttr>(&attributes);
        pool != nullptr && (pool->divisor < 0 || pool->divisor > INT32_MAX))
        return wrong(fmt::format("its divisor is {}", pool->divisor));
    return {};
}

Result<void> need_rank(const Shape& shape, std::size_t rank, const char* what) {
    if (shape.size() != rank)
        return wrong(fmt::format("{} has shape {}, rank {} is needed", what, shape_text(shape), rank));
    return {};
}

/// Kernel, stride, dilation and padding along one axis.
struct Window {
    std::int64_t kernel, stride, dilation, before, after;
};

Result<void> check(const Window& w, const char* axis) {
    if (w.kernel < 1 || w.stride < 1 || w.dilation < 1 || w.before < 0 || w.after < 0 || w.kernel > kLargest ||
        w.stride > kLargest || w.dilation > kLargest || w.before > kLargest || w.after > kLargest)
        return wrong(
            fmt::format("{}: kernel {}, stride {}, dilation {}, padding {} and {}: the first three must be "
                        "positive, padding not negative",
                        axis, w.kernel, w.stride, w.dilation, w.before, w.after));
    if (const auto extent = checked_mul(w.dilation, w.kernel); !extent || *extent > kLargest)
        return wrong(fmt::format("{}: a kernel of {} spread by {} is too large", axis, w.kernel, w.dilation));
    return {};
}

Result<std::int64_t> windows(std::int64_t in, const Window& w, const char* axis) {
    TRY(check(w, axis));
    const std::int64_t room = in + w.before + w.after - w.dilation * (w.kernel - 1) - 1;
    if (room < 0)
        return wrong(fmt::format("{}: a kernel of {} (dilation {}) does not fit {} elements with padding {} and {}",
                                 axis, w.kernel, w.dilation, in, w.before, w.after));
    return room / w.stride + 1;
}

Result<Shape> conv(const Graph& g, const ConvAttr& a, std::span<const ValueId> in, bool transposed) {
    const Shape &x = g[in[0]].shape, &w = g[in[1]].shape;
    TRY(need_rank(x, 4, "the input"));
    TRY(need_rank(w, 4, "the weight"));
    if (a.groups < 1 || x[3] % a.groups != 0 || w[0] % a.groups != 0)
        return wrong(fmt::format("{} groups do not divide {} input and {} output channels", a.groups, x[3], w[0]));
    if (w[3] != x[3] / a.groups)
        return wrong(fmt::format("the weight {} is for {} channels a group, the input {} has {}", shape_text(w), w[3],
                                 shape_text(x), x[3] / a.groups));
    if (in[2] != kNoValue && g[in[2]].shape != Shape{w[0]})
        return wrong(fmt::format("the bias has shape {}, [{}] is needed", shape_text(g[in[2]].shape), w[0]));
    const Window high{w[1], a.stride[0], a.dilation[0], a.padding.top, a.padding.bottom};
    const Window wide{w[2], a.stride[1], a.dilation[1], a.padding.left, a.padding.right};
    if (!transposed) {
        TRY_ASSIGN(const auto h, windows(x[1], high, "height"));
        TRY_ASSIGN(const auto width, windows(x[2], wide, "width"));
        return Shape{x[0], h, width, w[0]};
    }
    Shape out{x[0], 0, 0, w[0]};
    for (const int d : {0, 1}) {
        const Window& v = d == 0 ? high : wide;
        TRY(check(v, d == 0 ? "height" : "width"));
        const auto extra = a.output_padding[static_cast<std::size_t>(d)];
        if (extra < 0 || extra >= std::max(v.stride, v.dilation))
            return wrong(fmt::format("output padding {} must be smaller than stride or dilation", extra));
        const auto spread = checked_mul(x[static_cast<std::size_t>(d) + 1] - 1, v.stride);
        if (!spread || *spread > kLargest) return wrong("the result is too large");
        const auto size = *spread - v.before - v.after + v.dilation * (v.kernel - 1) + extra + 1;
        if (size < 1) return wrong("padding leaves nothing of the result");
        out[static_cast<std::size_t>(d) + 1] = size;
    }
    return out;
}

Result<Shape> pool(const Shape& x, const PoolAttr& a) {
    TRY(need_rank(x, 4, "the input"));
    TRY_ASSIGN(const auto h,
               windows(x[1], {a.kernel[0], a.stride[0], a.dilation[0], a.padding.top, a.padding.bottom}, "height"));
    TRY_ASSIGN(const auto w,
               windows(x[2], {a.kernel[1], a.stride[1], a.dilation[1], a.padding.left, a.padding.right}, "width"));
    return Shape{x[0], h, w, x[3]};
}

Result<Shape> fully_connected(const Graph& g, std::span<const ValueId> in) {
    const Shape &x = g[in[0]].shape, &w = g[in[1]].shape;
    TRY(need_rank(w, 2, "the weight"));
    if (x.empty() || x.back() != w[1])
        return wrong(fmt::format("the input {} does not end in the weight's {} columns", shape_text(x), w[1]));
    if (in[2] != kNoValue && g[in[2]].shape != Shape{w[0]})
        return wrong(fmt::format("the bias has shape {}, [{}] is needed", shape_text(g[in[2]].shape), w[0]));
    Shape out = x;
    out.back() = w[0];
    return out;
}

Result<Shape> matmul(const Shape& a, const Shape& b) {
    if (a.size() < 2 || b.size() < 2 || a.back() != b[b.size() - 2])
        return wrong(fmt::format("{} and {} cannot be multiplied", shape_text(a), shape_text(b)));
    TRY_ASSIGN(Shape out, broadcast(Shape(a.begin(), a.end() - 2), Shape(b.begin(), b.end() - 2)));
    out.push_back(a[a.size() - 2]);
    out.push_back(b.back());
    return out;
}

Result<Shape> reduce(Op op, const Shape& x, const ReduceAttr& a) {
    int before = -1;
    if (a.axes.empty() && !x.empty()) return wrong("no axis is named");
    for (const int axis : a.axes) {
        if (axis <= before || axis >= static_cast<int>(x.size()))
            return wrong(fmt::format("axes {} of a tensor of rank {}", fmt::join(a.axes, ", "), x.size()));
        if (x[static_cast<std::size_t>(axis)] < 1) return wrong("an axis of no elements is reduced");
        before = axis;
    }
    if ((op == Op::CumSum || op == Op::ArgMax) && a.axes.size() != 1) return wrong("exactly one axis is needed");
    if (op == Op::CumSum) return x;
    Shape out;
    for (std::size_t d = 0; d < x.size(); ++d) {
        const bool gone = std::ranges::find(a.axes, static_cast<int>(d)) != a.axes.end();
        if (!gone)
            out.push_back(x[d]);
        else if (a.keep_dims)
            out.push_back(1);
    }
    return out;
}

Result<std::size_t> axis_of(const AxisAttr& a, std::size_t rank) {
    if (a.axis < 0 || a.axis >= static_cast<int>(rank))
        return wrong(fmt::format("axis {} of a tensor of rank {}", a.axis, rank));
    return static_cast<std::size_t>(a.axis);
}

Result<Shape> concat(const Graph& g, const AxisAttr& a, std::span<const ValueId> in) {
    Shape out = g[in[0]].shape;
    TRY_ASSIGN(const auto axis, axis_of(a, out.size()));
    for (const auto id : in.subspan(1)) {
        const Shape& s = g[id].shape;
        bool fits = s.size() == out.size();
        for (std::size_t d = 0; fits && d < s.size(); ++d) fits = d == axis || s[d] == out[d];
        if (!fits) return wrong(fmt::format("{} cannot follow {} along axis {}", shape_text(s), shape_text(out), axis));
        out[axis] += s[axis];
    }
    return out;
}

Result<Shape> slice(const Shape& x, const SliceAttr& a) {
    if (a.starts.size() != x.size() || a.ends.size() != x.size() || a.steps.size() != x.size())
        return wrong("a slice needs one start, end and step a dimension");
    Shape out(x.size());
    for (std::size_t d = 0; d < x.size(); ++d) {
        const auto start = a.starts[d], end = a.ends[d], step = a.steps[d];
        const bool forward = step > 0 && start >= 0 && start <= x[d] && end >= start && end <= x[d];
        const bool backward = step < 0 && step > -kLargest && start < x[d] && end >= -1 && end <= start;
        if (!forward && !backward)
            return wrong(fmt::format("slice {}:{}:{} of dimension {} with {} elements", start, end, step, d, x[d]));
        // Without a sum that a step near the largest number would overflow.
        const auto length = forward ? end - start : start - end;
        out[d] = length == 0 ? 0 : (length - 1) / (forward ? step : -step) + 1;
    }
    return out;
}

Result<Shape> pad(const Shape& x, const PadAttr& a) {
    if (a.before.size() != x.size() || a.after.size() != x.size())
        return wrong("padding needs two numbers a dimension");
    Shape out(x.size());
    for (std::size_t d = 0; d < x.size(); ++d) {
        const auto most = a.mode == PadAttr::Mode::Constant || a.mode == PadAttr::Mode::Replicate ? kLargest
                          : a.mode == PadAttr::Mode::Symmetric                                    ? x[d]
                                                                                                  : x[d] - 1;
        for (const auto n : {a.before[d], a.after[d]})
            if (n < 0 || (n > most && n > 0))
                return wrong(fmt::format("padding of {} at dimension {} with {} elements", n, d, x[d]));
        out[d] = x[d] + a.before[d] + a.after[d];
    }
    return out;
}

Result<Shape> permute(const Shape& x, const PermuteAttr& a) {
    std::vector<bool> seen(x.size());
    Shape out;
    for (const int d : a.order) {
        if (d < 0 || d >= static_cast<int>(x.size()) || seen[static_cast<std::size_t>(d)] || a.order.size() != x.size())
            return wrong(fmt::format("order {} of a tensor of rank {}", fmt::join(a.order, ", "), x.size()));
        seen[static_cast<std::size_t>(d)] = true;
        out.push_back(x[static_cast<std::size_t>(d)]);
    }
    if (out.size() != x.size()) return wrong("an order names every dimension once");
    return out;
}

Result<Shape> norm(const Graph& g, Op op, const NormAttr& a, std::span<const ValueId> in) {
    const Shape& x = g[in[0]].shape;
    Shape parameters{x.empty() ? 0 : x.back()};
    if (op == Op::LayerNorm) {
        parameters.clear();
        for (const int d : a.axes) {
            if (d < 0 || d >= static_cast<int>(x.size())) return wrong("an axis outside the input's rank");
            parameters.push_back(x[static_cast<std::size_t>(d)]);
        }
        if (a.axes.empty() || static_cast<std::size_t>(a.axes.front()) + a.axes.size() != x.size())
            return wrong("the axes are not the last ones");
    } else if (op == Op::GroupNorm && (x.empty() || a.groups < 1 || x.back() % a.groups != 0)) {
        return wrong(fmt::format("{} groups do not divide the channels of {}", a.groups, shape_text(x)));
    }
    for (const auto id : in.subspan(1))
        if (id != kNoValue && g[id].shape != parameters)
            return wrong(
                fmt::format("a parameter has shape {}, {} is needed", shape_text(g[id].shape), shape_text(parameters)));
    return x;
}

Result<Shape> as_asked(const Graph& g, Op op, std::span<const ValueId> in, const Shape& asked) {
    const Shape& x = g[in[0]].shape;
    if (op == Op::Reshape) {
        if (element_count(asked) != element_count(x))
            return wrong(fmt::format("{} cannot become {}", shape_text(x), shape_text(asked)));
    } else if (op == Op::Expand) {
        TRY_ASSIGN(const Shape both, broadcast(x, asked));
        if (both != asked) return wrong(fmt::format("{} cannot be expanded to {}", shape_text(x), shape_text(asked)));
    } else {
        TRY(need_rank(x, 4, "the input"));
        if (asked.size() != 4 || asked[0] != x[0] || asked[3] != x[3] || asked[1] < 1 || asked[2] < 1)
            return wrong(fmt::format("{} cannot be resized to {}", shape_text(x), shape_text(asked)));
    }
    return asked;
}

Result<Shape> infer(const Graph& g, Op op, const Attributes& attributes, std::span<const ValueId> in,
                    const Shape& asked) {
    const Shape& x = g[in[0]].shape;
    switch (op) {
        case Op::Conv2d:
        case Op::ConvTranspose2d:
            return conv(g, std::get<ConvAttr>(attributes), in, op == Op::ConvTranspose2d);
        case Op::FullyConnected:
            return fully_connected(g, in);
        case Op::MatMul:
            return matmul(x, g[in[1]].shape);
        case Op::MaxPool2d:
        case Op::AvgPool2d:
            return pool(x, std::get<PoolAttr>(attributes));
        case Op::Concat:
            return concat(g, std::get<AxisAttr>(attributes), in);
        case Op::Slice:
            return slice(x, std::get<SliceAttr>(attributes));
        case Op::Pad:
            return pad(x, std::get<PadAttr>(attributes));
        case Op::Permute:
            return permute(x, std::get<PermuteAttr>(attributes));
        case Op::Reshape:
        case Op::Expand:
        case Op::Resize:
            return as_asked(g, op, in, asked);
        case Op::Gather: {
            TRY_ASSIGN(const auto axis, axis_of(std::get<AxisAttr>(attributes), x.size()));
            Shape out(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(axis));
            out.insert(out.end(), g[in[1]].shape.begin(), g[in[1]].shape.end());
            out.insert(out.end(), x.begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.end());
            return out;
        }
        default:
            break;
    }
    switch (op_facts(op).kind) {
        case OpClass::Binary:
            return broadcast(x, g[in[1]].shape);
        case OpClass::Reduce:
            return reduce(op, x, std::get<ReduceAttr>(attributes));
        case OpClass::Norm:
            return norm(g, op, std::get<NormAttr>(attributes), in);
        case OpClass::Axis:
            TRY(axis_of(std::get<AxisAttr>(attributes), x.size()));
            return x;
        default:
            return x;
    }
}

}  // namespace

std::string shape_text(const Shape& shape) {
    return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::vector<std::int64_t> row_major_strides(const Shape& shape) {
    std::vector<std::int64_t> strides(shape.size(), 1);
    for (std::size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
    return strides;
}

Result<Shape> broadcast(const Shape& a, const Shape& b) {
    const Shape &longer = a.size() >= b.size() ? a : b, &shorter = a.size() >= b.size() ? b : a;
    Shape out = longer;
    const std::size_t lead = longer.size() - shorter.size();
    for (std::size_t d = 0; d < shorter.size(); ++d) {
        auto& size = out[lead + d];
        if (size == shorter[d] || shorter[d] == 1) continue;
        if (size != 1) return wrong(fmt::format("{} and {} do not broadcast", shape_text(a), shape_text(b)));
        size = shorter[d];
    }
    return out;
}

Result<Shape> infer_shape(const Graph& g, Op op, const Attributes& attributes, std::span<const ValueId> in,
                          const Shape& asked) {
    const OpFacts& facts = op_facts(op);
    if (attributes.index() != facts.attributes)
        return std::unexpected(
            host::Error(ErrorCode::Internal, fmt::format("{} with another's attributes", facts.name)));
    if (in.size() < facts.min_operands || (facts.max_operands != kAnyOperands && in.size() > facts.max_operands))
        return wrong(fmt::format("{} operands", in.size()));
    for (std::size_t i = 0; i < in.size(); ++i)
        if (in[i] == kNoValue ? i == 0 || facts.kind == OpClass::Binary || op == Op::Concat : in[i] >= g.values.size())
            return wrong(fmt::format("operand {} is missing", i));
    TRY(check_numbers(attributes));
    // Moving nothing is harmless, and shape arithmetic does it; to compute with nothing has no meaning.
    if (facts.kind != OpClass::Movement && facts.kind != OpClass::Unary && facts.kind != OpClass::Binary)
        for (std::size_t i = 0; i < in.size(); ++i)
            if (in[i] != kNoValue && element_count(g[in[i]].shape) == 0)
                return wrong(fmt::format("operand {} of shape {} has no elements", i, shape_text(g[in[i]].shape)));
    TRY_ASSIGN(Shape shape, infer(g, op, attributes, in, asked));
    if (shape.size() > kMaxRank)
        return wrong(fmt::format("the result would have rank {}, at most {}", shape.size(), kMaxRank));
    std::int64_t count = 1;
    for (const auto size : shape) {
        // A dimension of none must not hide what the others come to: strides are products of them.
        const auto more = size < 0 ? std::nullopt : checked_mul(count, std::max<std::int64_t>(size, 1));
        if (!more || *more > kLargest) return wrong(fmt::format("the result {} is too large", shape_text(shape)));
        count = *more;
    }
    return shape;
}

}  // namespace talpa::compiler
