// Pools and reductions. Averages are pools with the multiplier that belongs to them; sums over channels are
// convolutions with ones. (ethos-u65, sections 5.4, 5.5 and 9.7)
#include <fmt/format.h>

#include <algorithm>

#include "compiler/lower/lowerer.h"

namespace talpa::compiler {
namespace {

constexpr std::int64_t kMostHeight = 256, kMostArea = 65536, kMostPadded = 8;

struct Window {
    std::int64_t height = 1, width = 1, stride_y = 1, stride_x = 1;
    Edges padding;
};

std::optional<std::string> window_obstacle(const Window& w, const Value& in, const Value& out) {
    if (w.height > kMostHeight || w.height * w.width > kMostArea)
        return fmt::format("its window is {} x {}, at most height {} and area {} are possible", w.height, w.width,
                           kMostHeight, kMostArea);
    if (w.padding.top >= w.height || w.padding.left >= w.width || w.padding.bottom >= w.height + w.stride_y ||
        w.padding.right >= w.width + w.stride_x)
        return "it is padded by more than its window";
    // A stripe of rows, or a part of the columns, that sees padding alone would have nothing to read.
    if ((out.shape[1] - 1) * w.stride_y - w.padding.top >= in.shape[1] ||
        (out.shape[2] - 1) * w.stride_x - w.padding.left >= in.shape[2])
        return "its last window holds nothing but padding";
    return std::nullopt;
}

Step pool_step(const Window& w, npu::OpKind kind, npu::ElementType ifm, npu::ElementType ofm) {
    Step step;
    step.op = plain_operation(kind, ifm, ofm);
    step.op.kernel.height = static_cast<std::uint32_t>(w.height);
    step.op.kernel.width = static_cast<std::uint32_t>(w.width);
    step.op.padding = {static_cast<std::uint32_t>(w.padding.top), static_cast<std::uint32_t>(w.padding.left),
                       static_cast<std::uint32_t>(w.padding.right), static_cast<std::uint32_t>(w.padding.bottom)};
    return step;
}

bool padded(const Edges& e) {
    return e.top != 0 || e.left != 0 || e.bottom != 0 || e.right != 0;
}

Window window_of(const PoolAttr& a) {
    return {a.kernel[0], a.kernel[1], a.stride[0], a.stride[1], a.padding};
}

// Does the average of every window divide by one number, padded positions or not?
std::int64_t fixed_divisor(const PoolAttr& a) {
    if (a.divisor != 0) return a.divisor;
    if (a.count_include_pad || !padded(a.padding)) return a.kernel[0] * a.kernel[1];
    return 0;
}

bool same_scale(const Value& a, const Value& b) {
    return a.quantization->scales[0] == b.quantization->scales[0];
}

// ExecuTorch's exporter quantizes the zero point of an average pool once more, as if it were a real number. The same
// on both sides, it shows only where an average lies just between two integers; we give the bytes that others give.
std::int32_t average_zero_point(const Quantization& q) {
    return static_cast<std::int32_t>(quantize(q.zero_points[0], q));
}

// A window of ones that sums: padded positions count as the zero point, so they add nothing.
void sum_of_ones(Step& step, std::uint32_t depth, npu::Scale scale, bool depthwise, std::uint32_t inputs) {
    auto filter = std::make_shared<Filter>();
    filter->depthwise = depthwise;
    filter->shape = {depth, step.op.kernel.height, step.op.kernel.width, depthwise ? 1 : inputs};
    filter->weights.assign(filter->shape.size(), 1);
    filter->records.assign(depth, {0, scale.multiplier, scale.shift});
    step.op.kind = depthwise ? npu::OpKind::Depthwise : npu::OpKind::Conv;
    step.op.ofm_global_scale = false;
    step.op.ofm_scale = {};
    step.filter = std::move(filter);
}

// -1 - x, or 255 - x: turns the order of all numbers of a type around.
host::Result<void> complement(Lowerer& l, const Shape& shape, npu::ElementType type, const Place& from,
                              const Place& to) {
    Operand all, x;
    all.type = x.type = type;
    all.is_scalar = true;
    all.scalar = static_cast<std::int32_t>(type.min() + type.max());
    x.place = from;
    return l.elementwise(plain_operation(npu::OpKind::Sub, type, type), shape, to, 0, all, x);
}

}  // namespace

std::optional<std::string> pool_obstacle(const Graph& graph, const Node& node) {
    const auto& a = node.as<PoolAttr>();
    const Value &in = graph[node.inputs[0]], &out = graph[node.outputs[0]];
    if (a.dilation != Pair{1, 1}) return "its window is dilated";
    if (auto why = window_obstacle(window_of(a), in, out)) return why;
    if (auto why = strides_obstacle(a.stride, out.shape[0] * window_operations(a.stride, out.shape[1], out.shape[2])))
        return why;
    if (node.op == Op::MaxPool2d) {
        if (in.quantization != out.quantization) return "its input and output have different scales";
        return std::nullopt;
    }
    const bool inner = fixed_divisor(a) == 0;
    if (inner && (a.kernel[0] > kMostPadded || a.kernel[1] > kMostPadded))
        return fmt::format("its padded window is {} x {}, at most {} is possible", a.kernel[0], a.kernel[1],
                           kMostPadded);
    if (inner && !same_scale(in, out)) return "it averages over padding into another scale";
    if (a.kernel[0] > 64 && padded(a.padding)) return "its padded window is higher than 64";
    return std::nullopt;
}

host::Result<void> lower_pool(Lowerer& l, const Node& node) {
    const Graph& graph = l.graph();
    const auto& a = node.as<PoolAttr>();
    const Value &in = graph[node.inputs[0]], &out = graph[node.outputs[0]];
    const npu::ElementType type = element_type(in.stored_type());
    const bool max = node.op == Op::MaxPool2d;
    const Place from = l.contiguous(node.inputs[0]), to = l.home_as(node.outputs[0], out.shape);
    for (std::int64_t n = 0; n < in.shape[0]; ++n) {
        Step step = pool_step(window_of(a), max ? npu::OpKind::MaxPool : npu::OpKind::AvgPool, type,
                              element_type(out.stored_type()));
        const auto ifm = image_view(from, in.shape, n, in.quantization->zero_points[0]);
        const auto ofm = image_view(to, out.shape, n, out.quantization->zero_points[0]);
        if (!ifm || !ofm)
            return host::failure(ErrorCode::Internal, "{}: its channels do not lie side by side", out.name);
        step.ifm = *ifm;
        step.ofm = *ofm;
        set_limits(step.op, element_type(out.stored_type()), limits_of(out, a.clamp));
        if (max) {
            step.ifm.zero_point = step.ofm.zero_point = 0;
        } else {
            step.op.ofm_rounding = l.rounding();
            const std::int64_t divisor = fixed_divisor(a);
            npu::Scale scale = average_scale(static_cast<std::uint32_t>(std::max<std::int64_t>(1, divisor)));
            if (!same_scale(in, out))
                scale =
                    l.scale(in.quantization->scales[0] / out.quantization->scales[0] / static_cast<double>(divisor));
            if (divisor == 0)
                step.op.ofm_scale = {1, 0};  // the hardware divides each window by what it holds
            else if (padded(a.padding))
                sum_of_ones(step, step.ifm.depth, scale, true, 1);
            else
                step.op.ofm_scale = scale;
            // On both sides alike, so only where a window of zero points averages to the zero point.
            const bool whole = divisor == 0 || divisor == a.kernel[0] * a.kernel[1];
            if (step.op.kind == npu::OpKind::AvgPool && l.arithmetic() == Arithmetic::Tosa && same_scale(in, out) &&
                whole)
                step.ifm.zero_point = step.ofm.zero_point = average_zero_point(*out.quantization);
        }
        l.add_windows(step, a.stride);
    }
    return {};
}

std::optional<std::string> reduction_obstacle(const Graph& graph, const Node& node) {
    const auto& axes = node.as<ReduceAttr>().axes;
    const Value &in = graph[node.inputs[0]], &out = graph[node.outputs[0]];
    const int rank = static_cast<int>(in.shape.size());
    if (axes.empty()) return "it reduces nothing";
    // Neighbouring axes: they are one dimension.
    for (std::size_t i = 1; i < axes.size(); ++i)
        if (axes[i] != axes[i - 1] + 1) return "it reduces axes that are not neighbours";
    const bool channels = axes.back() == rank - 1;
    std::int64_t reduced = 1;
    for (const int axis : axes) reduced *= in.shape[static_cast<std::size_t>(axis)];
    const bool picks = node.op == Op::ReduceMax || node.op == Op::ReduceMin;
    if (picks && in.quantization != out.quantization) return "its input and output have different scales";
    if (reduced > kMostArea) return fmt::format("it reduces {} elements, at most {} is possible", reduced, kMostArea);
    constexpr std::int64_t kMostOperations = 4096;
    std::int64_t before = 1;
    for (int d = 0; d < axes.front(); ++d) before *= in.shape[static_cast<std::size_t>(d)];
    if (!channels && before > kMostOperations)
        return fmt::format("it would take {} operations, at most {} are made", before, kMostOperations);
    return std::nullopt;
}

host::Result<void> lower_reduction(Lowerer& l, const Node& node) {
    const Graph& graph = l.graph();
    const auto& axes = node.as<ReduceAttr>().axes;
    const Value &in = graph[node.inputs[0]], &out = graph[node.outputs[0]];
    const npu::ElementType type = element_type(in.stored_type()), ofm = element_type(out.stored_type());
    // before x reduced x after
    std::int64_t before = 1, reduced = 1, after = 1;
    std::vector<std::int64_t> window;
    for (int d = 0; d < static_cast<int>(in.shape.size()); ++d) {
        const std::int64_t size = in.shape[static_cast<std::size_t>(d)];
        if (d < axes.front())
            before *= size;
        else if (d <= axes.back()) {
            reduced *= size;
            window.push_back(size);
        } else
            after *= size;
    }
    const Shape in_shape{before, reduced, after}, out_shape{before, after};
    const bool least = node.op == Op::ReduceMin, picks = least || node.op == Op::ReduceMax;
    auto from = reshape(l.place(node.inputs[0]), in.shape, in_shape);
    const bool sums_channels = after == 1 && !picks;
    if (!from || (after != 1 && from->strides[2] != 1) || (sums_channels && reduced != 1 && from->strides[1] != 1))
        from = reshape(l.contiguous(node.inputs[0], true), in.shape, in_shape);
    const Place home = l.home_as(node.outputs[0], out_shape);
    Place to = home;
    if (least && from) {
        // The hardware has no minimum over a window: it is the maximum of the complements, complemented.
        const Place mirrored = l.dense_place(l.new_tensor(in.name + "/complement", type, in_shape), in_shape);
        TRY(complement(l, in_shape, type, *from, mirrored));
        from = mirrored;
        to = l.dense_place(l.new_tensor(out.name + "/complement", type, out_shape), out_shape);
    }
    if (!from) return host::failure(ErrorCode::Internal, "{}: no rows in memory", out.name);
    const std::int32_t in_zero = in.quantization->zero_points[0], out_zero = out.quantization->zero_points[0];
    double factor = in.quantization->scales[0] / out.quantization->scales[0];
    if (node.op == Op::Mean) factor /= static_cast<double>(reduced);
    const npu::Scale scale = l.scale(factor);
    const Limits limits = limits_of(out, {});

    const auto prepare = [&](Step& step) {
        step.op.ofm_rounding = l.rounding();
        step.op.ofm_scale = picks ? npu::Scale{1, 0} : scale;
        step.ifm.zero_point = picks ? 0 : in_zero;
        step.ofm.zero_point = picks ? 0 : out_zero;
        set_limits(step.op, ofm, limits);
    };
    const npu::OpKind kind = picks ? npu::OpKind::MaxPool : npu::OpKind::AvgPool;
    if (after == 1) {
        // Along the last dimension: a sum is a convolution with ones, a maximum a pool over a map one channel deep.
        Step step = pool_step({}, kind, type, ofm);
        step.ifm = {from->tensor,
                    1,
                    static_cast<std::uint32_t>(before),
                    static_cast<std::uint32_t>(reduced),
                    from->offset,
                    before * reduced,
                    from->strides[0] == 0 || before == 1 ? reduced : from->strides[0],
                    0};
        step.ofm = {to.tensor, 1,      static_cast<std::uint32_t>(before), 1,
                    to.offset, before, before == 1 ? 1 : to.strides[0],    0};
        if (picks) {
            step.ifm.height = static_cast<std::uint32_t>(before);
            step.ifm.width = static_cast<std::uint32_t>(reduced);
            step.ifm.depth = 1;
            step.ifm.stride_y = step.ifm.stride_x;
            step.ifm.stride_x = from->strides[1];
            step.ofm.height = static_cast<std::uint32_t>(before);
            step.ofm.width = 1;
            step.ofm.stride_y = before == 1 ? 1 : to.strides[0];
            step.op.kernel.width = static_cast<std::uint32_t>(reduced);
        }
        prepare(step);
        if (!picks) {
            step.op.acc_format = type.bytes == 2 ? npu::AccFormat::Int40 : npu::AccFormat::Int32;
            sum_of_ones(step, 1, scale, false, step.ifm.depth);
        }
        l.add_step(std::move(step));
        if (least) TRY(complement(l, out_shape, type, to, home));
        return {};
    }
    // A window over all of the reduced positions: as the axes are if it fits, else the way that they divide.
    std::int64_t height = window.size() == 2 ? window[0] : 1, width = reduced / height;
    if (height > kMostHeight) {
        height = kMostHeight;
        while (reduced % height != 0) --height;
        width = reduced / height;
    }
    for (std::int64_t n = 0; n < before; ++n) {
        Step step = pool_step({height, width, 1, 1, {}}, kind, type, ofm);
        step.ifm = {from->tensor,
                    static_cast<std::uint32_t>(height),
                    static_cast<std::uint32_t>(width),
                    static_cast<std::uint32_t>(after),
                    from->offset + n * from->strides[0],
                    from->strides[1] * width,
                    from->strides[1],
                    0};
        step.ofm = {to.tensor, 1, 1, static_cast<std::uint32_t>(after), to.offset + n * to.strides[0], after, after, 0};
        if (after != 1 && to.strides[1] != 1)
            return host::failure(ErrorCode::Internal, "{}: its channels do not lie side by side", out.name);
        prepare(step);
        l.add_step(std::move(step));
    }
    if (least) TRY(complement(l, out_shape, type, to, home));
    return {};
}

}  // namespace talpa::compiler
