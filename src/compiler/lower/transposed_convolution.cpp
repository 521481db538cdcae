// Transposed convolution as convolutions of stride 1, one for each phase of the output: output positions that are the
// same modulo the stride see the same weights. Nothing is multiplied with the zeros that inserting rows would bring.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/lower/filter.h"
#include "compiler/lower/lowerer.h"

namespace talpa::compiler {
namespace {

// One phase along one axis: outputs first, first + stride, … (count of them); output n reads inputs from `from` + n on,
// `taps` of them, weights `phase + stride * t` in falling order.
struct Phase {
    std::int64_t first = 0, count = 0, from = 0, taps = 1, phase = 0;
    std::int64_t last = 0;    ///< of the weights' own taps
    std::int64_t before = 0;  ///< taps at the start that are zero: only there to reach an input
};

Phase phase_of(std::int64_t phase, std::int64_t stride, std::int64_t kernel, std::int64_t padding, std::int64_t output,
               std::int64_t input) {
    Phase p;
    p.phase = phase;
    p.first = ((phase - padding) % stride + stride) % stride;
    p.count = p.first < output ? (output - p.first - 1) / stride + 1 : 0;
    p.taps = std::max<std::int64_t>(1, (kernel - phase + stride - 1) / stride);
    p.last = p.taps - 1;
    p.from = (p.first + padding - phase) / stride - p.last;
    // Outputs that see no input at all are the bias alone; the hardware must still read something, and so must each row
    // of them, since a stripe may be any rows: zeros before the weights reach the last input, zeros behind the first.
    p.before = std::max<std::int64_t>(0, p.from + p.count - 1 - (input - 1));
    p.from -= p.before;
    p.taps += p.before;
    p.taps += std::max<std::int64_t>(0, -(p.from + p.taps - 1));
    return p;
}

}  // namespace

std::optional<std::string> transposed_convolution_obstacle(const Graph& graph, const Node& node) {
    const auto& attr = node.as<ConvAttr>();
    const Value& w = graph[node.inputs[1]];
    if (attr.dilation != Pair{1, 1}) return "it is transposed and dilated";
    if (attr.groups != 1 && attr.groups != w.shape[0]) return "it is transposed and grouped";
    if (w.shape[1] > 64 || w.shape[2] > 64) return "its kernel is larger than 64";
    constexpr std::int64_t kMostStrides = 64, kMostOperations = 4096;
    if (attr.stride[0] > kMostStrides || attr.stride[1] > kMostStrides)
        return fmt::format("its stride is {} x {}, at most {} is possible", attr.stride[0], attr.stride[1],
                           kMostStrides);
    const std::int64_t operations = attr.stride[0] * attr.stride[1] * graph[node.inputs[0]].shape[0];
    if (operations > kMostOperations)
        return fmt::format("it would take {} operations, at most {} are made", operations, kMostOperations);
    return filter_obstacle(graph, node.inputs[0], node.inputs[1], node.inputs.size() > 2 ? node.inputs[2] : kNoValue,
                           node.outputs[0]);
}

host::Result<void> lower_transposed_convolution(Lowerer& l, const Node& node) {
    const Graph& graph = l.graph();
    const auto& attr = node.as<ConvAttr>();
    const Value &in = graph[node.inputs[0]], &w = graph[node.inputs[1]], &out = graph[node.outputs[0]];
    const ValueId bias = node.inputs.size() > 2 ? node.inputs[2] : kNoValue;
    const std::vector<std::int16_t> weights = plain_weights(w);
    const std::vector<ScaleRecord> records =
        scale_records(graph, node.inputs[0], node.inputs[1], bias, node.outputs[0], false);
    const std::int64_t kh = w.shape[1], kw = w.shape[2], depth = w.shape[3];
    const bool depthwise = attr.groups > 1;
    const Place from = l.contiguous(node.inputs[0]), to = l.home_as(node.outputs[0], out.shape);
    for (std::int64_t py = 0; py < attr.stride[0]; ++py)
        for (std::int64_t px = 0; px < attr.stride[1]; ++px) {
            const Phase y = phase_of(py, attr.stride[0], kh, attr.padding.top, out.shape[1], in.shape[1]),
                        x = phase_of(px, attr.stride[1], kw, attr.padding.left, out.shape[2], in.shape[2]);
            if (y.count == 0 || x.count == 0) continue;
            auto filter = std::make_shared<Filter>();
            filter->depthwise = depthwise;
            filter->shape = {static_cast<std::uint32_t>(w.shape[0]), static_cast<std::uint32_t>(y.taps),
                             static_cast<std::uint32_t>(x.taps), static_cast<std::uint32_t>(depth)};
            filter->records = records;
            filter->weights.resize(filter->shape.size());
            for (std::int64_t o = 0; o < w.shape[0]; ++o)
                for (std::int64_t ty = 0; ty < y.taps; ++ty)
                    for (std::int64_t tx = 0; tx < x.taps; ++tx) {
                        const std::int64_t ky = py + attr.stride[0] * (y.last - (ty - y.before)),
                                           kx = px + attr.stride[1] * (x.last - (tx - x.before));
                        if (ky < 0 || kx < 0 || ky >= kh || kx >= kw) continue;
                        if (ty < y.before || tx < x.before || ty - y.before > y.last || tx - x.before > x.last)
                            continue;
                        const std::int16_t* source = weights.data() + ((o * kh + ky) * kw + kx) * depth;
                        std::copy(source, source + depth,
                                  filter->weights.data() + ((o * y.taps + ty) * x.taps + tx) * depth);
                    }
            for (std::int64_t n = 0; n < in.shape[0]; ++n) {
                const auto ifm = image_view(from, in.shape, n, in.quantization->zero_points[0]);
                const auto ofm = image_view(to, out.shape, n, out.quantization->zero_points[0]);
                if (!ifm || !ofm)
                    return host::failure(ErrorCode::Internal, "{}: its channels do not lie side by side", out.name);
                Step step;
                const npu::ElementType type = element_type(in.stored_type());
                step.op = plain_operation(depthwise ? npu::OpKind::Depthwise : npu::OpKind::Conv, type,
                                          element_type(out.stored_type()));
                step.op.acc_format = type.bytes == 2 ? npu::AccFormat::Int40 : npu::AccFormat::Int32;
                step.op.ofm_rounding = type.bytes == 2 ? npu::Rounding::Natural : l.rounding();
                step.op.kernel.height = filter->shape.height;
                step.op.kernel.width = filter->shape.width;
                step.op.kernel.part_kernel_first = !depthwise && (depth <= 8 || (y.taps * x.taps) % 4 == 0);
                set_limits(step.op, element_type(out.stored_type()), limits_of(out, attr.clamp));
                step.ifm = *ifm;
                step.ofm = *ofm;
                step.filter = filter;
                // Before the first input there are zeros; inputs that no output of this phase sees are skipped.
                const auto place_axis = [](const Phase& p, std::int64_t size, std::uint32_t& before,
                                           std::uint32_t& after) {
                    before = static_cast<std::uint32_t>(std::max<std::int64_t>(0, -p.from));
                    const std::int64_t end = p.from + p.count - 1 + p.taps;
                    after = static_cast<std::uint32_t>(std::max<std::int64_t>(0, end - size));
                    return std::max<std::int64_t>(0, p.from);
                };
                const std::int64_t y0 = place_axis(y, in.shape[1], step.op.padding.top, step.op.padding.bottom),
                                   x0 = place_axis(x, in.shape[2], step.op.padding.left, step.op.padding.right);
                step.ifm.offset += y0 * step.ifm.stride_y + x0 * step.ifm.stride_x;
                step.ifm.height -= static_cast<std::uint32_t>(y0);
                step.ifm.width -= static_cast<std::uint32_t>(x0);
                step.ofm.offset += y.first * step.ofm.stride_y + x.first * step.ofm.stride_x;
                step.ofm.stride_y *= attr.stride[0];
                step.ofm.stride_x *= attr.stride[1];
                step.ofm.height = static_cast<std::uint32_t>(y.count);
                step.ofm.width = static_cast<std::uint32_t>(x.count);
                l.add_step(std::move(step));
            }
        }
    return {};
}

}  // namespace talpa::compiler
