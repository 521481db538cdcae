// Convolution, depthwise and grouped convolution, fully connected. (ethos-u65, sections 5.2, 9.1 to 9.3)
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compiler/graph/npu_limits.h"
#include "compiler/lower/filter.h"
#include "compiler/lower/lowerer.h"

namespace talpa::compiler {
namespace {

constexpr std::int64_t kMostKernelHeight = 64, kMostKernelArea = 4096;

// The hardware spreads a kernel by 1 or 2; what is left of a larger dilation becomes zeros between the weights.
struct Spread {
    std::int64_t hardware = 1, zeros = 1;
};
Spread spread_of(std::int64_t dilation, std::int64_t kernel) {
    if (kernel == 1) return {1, 1};
    return dilation % 2 == 0 ? Spread{2, dilation / 2} : Spread{1, dilation};
}
std::int64_t spread_extent(std::int64_t kernel, const Spread& s) {
    return (kernel - 1) * s.zeros + 1;
}

// Weights for the input channels [in0, in0 + inputs) of the operation and output channels [out0, out0 + outputs) of
// the graph's filter; `group` input channels each reach `per_group` outputs.
struct Part {
    std::int64_t in0 = 0, inputs = 0, out0 = 0, outputs = 0;
};

std::shared_ptr<Filter> make_filter(const Graph& graph, const Node& node, const Part& part, bool depthwise,
                                    const Spread& sy, const Spread& sx, const std::vector<std::int16_t>& weights,
                                    const std::vector<ScaleRecord>& records) {
    const Value& w = graph[node.inputs[1]];
    const std::int64_t kh = w.shape[1], kw = w.shape[2], group_in = w.shape[3];
    const std::int64_t groups = node.as<ConvAttr>().groups, group_out = w.shape[0] / groups;
    auto f = std::make_shared<Filter>();
    f->depthwise = depthwise;
    f->shape = {static_cast<std::uint32_t>(part.outputs), static_cast<std::uint32_t>(spread_extent(kh, sy)),
                static_cast<std::uint32_t>(spread_extent(kw, sx)),
                static_cast<std::uint32_t>(depthwise ? 1 : part.inputs)};
    f->weights.resize(f->shape.size());
    for (std::int64_t o = 0; o < part.outputs; ++o) {
        const std::int64_t channel = part.out0 + o, group = channel / group_out;
        const std::int64_t first = depthwise ? 0 : group * group_in - part.in0;  // input that weight 0 belongs to
        for (std::int64_t y = 0; y < kh; ++y)
            for (std::int64_t x = 0; x < kw; ++x) {
                const std::int16_t* from = weights.data() + ((channel * kh + y) * kw + x) * group_in;
                std::int16_t* to =
                    f->weights.data() +
                    ((o * f->shape.height + y * sy.zeros) * f->shape.width + x * sx.zeros) * f->shape.ifm_depth + first;
                std::copy(from, from + group_in, to);
            }
    }
    f->records.assign(records.begin() + part.out0, records.begin() + part.out0 + part.outputs);
    return f;
}

// Part-kernel order is as good or better when the kernel fills its steps of four better than the depth its 32 (9.3).
bool prefers_part_kernel(const FilterShape& f, bool wide) {
    const auto share = [](double n, double step) { return n / (std::ceil(n / step) * step); };
    const double depth = f.ifm_depth, kernel = f.height * f.width;
    if (f.ifm_depth <= 8) return true;
    return share(depth, 8) * share(kernel, wide ? 2 : 4) >= share(depth, wide ? 16 : 32);
}

npu::Operation conv_operation(Lowerer& l, const Value& in, const Value& out, const Filter& f, const Clamp& clamp) {
    const npu::ElementType ifm = element_type(in.stored_type()), ofm = element_type(out.stored_type());
    npu::Operation op = plain_operation(f.depthwise ? npu::OpKind::Depthwise : npu::OpKind::Conv, ifm, ofm);
    op.kernel.height = f.shape.height;
    op.kernel.width = f.shape.width;
    op.kernel.part_kernel_first = !f.depthwise && prefers_part_kernel(f.shape, ifm.bytes == 2);
    op.acc_format = ifm.bytes == 2 ? npu::AccFormat::Int40 : npu::AccFormat::Int32;
    op.ofm_rounding = l.rounding();
    // Reduced multipliers of 16-bit convolutions round once (section 5.2).
    if (ifm.bytes == 2) op.ofm_rounding = npu::Rounding::Natural;
    set_limits(op, ofm, limits_of(out, clamp));
    return op;
}

// With a stride in width beyond the hardware's, so many columns count as one with all their channels.
bool joins_columns(const ConvAttr& attr, const Value& out) {
    return attr.groups == 1 && attr.stride[1] > kMostStride && out.shape[2] > 1;
}

bool is_depthwise(const ConvAttr& attr, const Value& in, const Value& out) {
    return attr.groups == in.shape[3] && attr.groups == out.shape[3] && attr.groups > 1;
}

std::int64_t groups_of(const ConvAttr& attr, const Value& in, const Value& out) {
    return is_depthwise(attr, in, out) ? 1 : attr.groups;
}

// Stride s in width: the input seen as columns of s * channels, the kernel's columns sorted into them.
struct JoinedColumns {
    Place place;
    Shape shape;
    std::shared_ptr<Filter> filter;
};
host::Result<JoinedColumns> join_columns(Lowerer& l, const Node& node, const Place& from, const Filter& f) {
    const Graph& graph = l.graph();
    const auto& attr = node.as<ConvAttr>();
    const Value &in = graph[node.inputs[0]], &out = graph[node.outputs[0]];
    const npu::ElementType type = element_type(in.stored_type());
    const std::int64_t s = attr.stride[1], depth = in.shape[3], dilation = attr.dilation[1];
    const std::int64_t extent = (graph[node.inputs[1]].shape[2] - 1) * dilation + 1, kernel = (extent + s - 1) / s;
    const std::int64_t columns = out.shape[2] - 1 + kernel, width = columns * s;
    Place p = from;
    // Columns side by side, beginning where the kernel does, and none beyond the row: else a copy that has it so.
    if (attr.padding.left != 0 || width > in.shape[2] || p.strides[2] != depth || (depth > 1 && p.strides[3] != 1)) {
        const Shape padded{in.shape[0], in.shape[1], width, depth};
        p = l.dense_place(l.new_tensor(in.name + "/columns", type, padded), padded);
        Shape inside = in.shape;
        inside[2] = std::min(inside[2], width - attr.padding.left);
        PadAttr border;
        border.before = {0, 0, attr.padding.left, 0};
        border.after = {0, 0, width - attr.padding.left - inside[2], 0};
        Place to = p;
        to.offset += attr.padding.left * p.strides[2];
        TRY(l.copy(inside, type, from, to));
        TRY(pad_around(l, border, inside, type, p, in.quantization->zero_points[0]));
    }
    JoinedColumns j;
    j.place = {p.tensor, p.offset, {p.strides[0], p.strides[1], s * depth, 1}};
    j.shape = {in.shape[0], in.shape[1], columns, s * depth};
    j.filter = std::make_shared<Filter>();
    j.filter->shape = {f.shape.ofm_depth, f.shape.height, static_cast<std::uint32_t>(kernel),
                       static_cast<std::uint32_t>(s * depth)};
    j.filter->records = f.records;
    j.filter->weights.resize(j.filter->shape.size());
    // f's own columns may be spread by the hardware's dilation.
    const std::int64_t spread = f.shape.width > 1 ? (extent - 1) / (f.shape.width - 1) : 1;
    const auto rows = std::int64_t{f.shape.ofm_depth} * f.shape.height;
    for (std::int64_t row = 0; row < rows; ++row)
        for (std::int64_t x = 0; x < f.shape.width; ++x)
            std::copy_n(f.weights.begin() + (row * f.shape.width + x) * depth, depth,
                        j.filter->weights.begin() + (row * kernel * s + x * spread) * depth);
    return j;
}

}  // namespace

std::optional<std::string> convolution_obstacle(const Graph& graph, const Node& node) {
    const auto& attr = node.as<ConvAttr>();
    const Value& w = graph[node.inputs[1]];
    const Value &in = graph[node.inputs[0]], &out = graph[node.outputs[0]];
    const Spread sy = spread_of(attr.dilation[0], w.shape[1]), sx = spread_of(attr.dilation[1], w.shape[2]);
    const std::int64_t kh = spread_extent(w.shape[1], sy) * sy.hardware - sy.hardware + 1,
                       kw = spread_extent(w.shape[2], sx) * sx.hardware - sx.hardware + 1;
    if (kh > kMostKernelHeight || kh * kw > kMostKernelArea)
        return fmt::format("its kernel reaches over {} x {}, at most height {} and area {} are possible", kh, kw,
                           kMostKernelHeight, kMostKernelArea);
    // A stripe of rows, or a part of the columns, that sees padding alone would have nothing to read.
    const bool beyond = (out.shape[1] - 1) * attr.stride[0] - attr.padding.top >= in.shape[1] ||
                        (out.shape[2] - 1) * attr.stride[1] - attr.padding.left >= in.shape[2];
    if (beyond || attr.padding.top >= kh || attr.padding.left >= kw || attr.padding.bottom >= kh + attr.stride[0] ||
        attr.padding.right >= kw + attr.stride[1])
        return "it is padded by more than its kernel";
    const bool joined = joins_columns(attr, out);
    if (joined && in.shape[3] * attr.stride[1] > kMostInDimension)
        return fmt::format("{} of its columns have {} channels, at most {} are possible", attr.stride[1],
                           in.shape[3] * attr.stride[1], kMostInDimension);
    const Pair stride{attr.stride[0], joined ? 1 : attr.stride[1]};
    if (auto why = strides_obstacle(attr.stride, out.shape[0] * groups_of(attr, in, out) *
                                                     window_operations(stride, out.shape[1], out.shape[2])))
        return why;
    return filter_obstacle(graph, node.inputs[0], node.inputs[1], node.inputs.size() > 2 ? node.inputs[2] : kNoValue,
                           node.outputs[0]);
}

host::Result<void> lower_convolution(Lowerer& l, const Node& node) {
    const Graph& graph = l.graph();
    const auto& attr = node.as<ConvAttr>();
    const Value &in = graph[node.inputs[0]], &w = graph[node.inputs[1]], &out = graph[node.outputs[0]];
    const ValueId bias = node.inputs.size() > 2 ? node.inputs[2] : kNoValue;
    const std::vector<ScaleRecord> records =
        scale_records(graph, node.inputs[0], node.inputs[1], bias, node.outputs[0], false);
    const std::vector<std::int16_t> weights = plain_weights(w);
    const Spread sy = spread_of(attr.dilation[0], w.shape[1]), sx = spread_of(attr.dilation[1], w.shape[2]);
    const std::int64_t inputs = in.shape[3], outputs = out.shape[3], groups = attr.groups;
    const std::int64_t group_in = inputs / groups, group_out = outputs / groups;
    const bool depthwise = is_depthwise(attr, in, out), joined = joins_columns(attr, out);

    // Groups share an operation, with zeros for weights between them, until it is worth a depth block.
    std::int64_t together = 1;
    if (!depthwise && groups > 1) {
        constexpr std::int64_t kBrick = 16, kShallow = 32;
        if (inputs <= kShallow) {
            together = groups;
        } else {
            while (together < groups &&
                   (group_in * together < kBrick || group_out * together % kBrick != 0 || groups % together != 0))
                ++together;
        }
    }
    const Place from = l.contiguous(node.inputs[0]), to = l.home_as(node.outputs[0], out.shape);
    for (std::int64_t g = 0; g < (depthwise ? 1 : groups); g += together) {
        const std::int64_t count = std::min(together, groups - g);
        const Part part = depthwise ? Part{0, inputs, 0, outputs}
                                    : Part{g * group_in, count * group_in, g * group_out, count * group_out};
        auto filter = make_filter(graph, node, part, depthwise, sy, sx, weights, records);
        JoinedColumns columns{from, in.shape, nullptr};
        if (joined) {
            TRY_ASSIGN(columns, join_columns(l, node, from, *filter));
            filter = columns.filter;
        }
        for (std::int64_t n = 0; n < in.shape[0]; ++n) {
            Step step;
            step.op = conv_operation(l, in, out, *filter, attr.clamp);
            step.op.kernel.dilation_y = static_cast<std::uint8_t>(sy.hardware);
            step.op.kernel.dilation_x = static_cast<std::uint8_t>(joined ? 1 : sx.hardware);
            step.op.padding = {static_cast<std::uint32_t>(attr.padding.top),
                               static_cast<std::uint32_t>(joined ? 0 : attr.padding.left),
                               static_cast<std::uint32_t>(joined ? 0 : attr.padding.right),
                               static_cast<std::uint32_t>(attr.padding.bottom)};
            const auto ifm = image_view(columns.place, columns.shape, n, in.quantization->zero_points[0]);
            if (!ifm) return host::failure(ErrorCode::Internal, "{}: its channels do not lie side by side", in.name);
            step.ifm = *ifm;
            const auto ofm = image_view(to, out.shape, n, out.quantization->zero_points[0]);
            if (!ofm) return host::failure(ErrorCode::Internal, "{}: its channels do not lie side by side", out.name);
            step.ofm = *ofm;
            step.ifm.offset += part.in0;
            if (!joined) step.ifm.depth = static_cast<std::uint32_t>(part.inputs);
            step.ofm.offset += part.out0;
            step.ofm.depth = static_cast<std::uint32_t>(part.outputs);
            step.filter = filter;
            l.add_windows(step, {attr.stride[0], joined ? 1 : attr.stride[1]});
        }
    }
    return {};
}

std::optional<std::string> fully_connected_obstacle(const Graph& graph, const Node& node) {
    return filter_obstacle(graph, node.inputs[0], node.inputs[1], node.inputs.size() > 2 ? node.inputs[2] : kNoValue,
                           node.outputs[0]);
}

host::Result<void> lower_fully_connected(Lowerer& l, const Node& node) {
    const Graph& graph = l.graph();
    const Value &in = graph[node.inputs[0]], &w = graph[node.inputs[1]], &out = graph[node.outputs[0]];
    const ValueId bias = node.inputs.size() > 2 ? node.inputs[2] : kNoValue;
    auto filter = std::make_shared<Filter>();
    filter->shape = {static_cast<std::uint32_t>(w.shape[0]), 1, 1, static_cast<std::uint32_t>(w.shape[1])};
    filter->weights = plain_weights(w);
    filter->records = scale_records(graph, node.inputs[0], node.inputs[1], bias, node.outputs[0], true);
    // Rows of the matrix are positions of an image one row high.
    const std::int64_t depth = w.shape[1], rows = element_count(in.shape) / depth;
    const Shape in_shape{1, 1, rows, depth}, out_shape{1, 1, rows, w.shape[0]};
    auto from = reshape(l.contiguous(node.inputs[0]), in.shape, in_shape);
    if (!from || from->strides[3] != 1) from = reshape(l.contiguous(node.inputs[0], true), in.shape, in_shape);
    const Place to = l.home_as(node.outputs[0], out_shape);
    if (!from) return host::failure(ErrorCode::Internal, "{}: no matrix in memory", out.name);
    Step step;
    step.op = conv_operation(l, in, out, *filter, node.as<FullyConnectedAttr>().clamp);
    const auto ifm = image_view(*from, in_shape, 0, in.quantization->zero_points[0]);
    const auto ofm = image_view(to, out_shape, 0, out.quantization->zero_points[0]);
    if (!ifm || !ofm) return host::failure(ErrorCode::Internal, "{}: its elements do not lie side by side", out.name);
    step.ifm = *ifm;
    step.ofm = *ofm;
    step.filter = filter;
    l.add_step(std::move(step));
    return {};
}

}  // namespace talpa::compiler
