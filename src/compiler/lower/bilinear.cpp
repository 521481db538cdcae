// Bilinear resizing to twice the size. Read with rows and columns repeated, it is a depthwise convolution with fixed
// weights: 1 2 1 each way where pixels have their value in their middle, 1 1 where at their corner. What lies beyond
// the border is the border's. (ethos-u65, section 9.1)
#include <fmt/format.h>

#include "compiler/lower/lowerer.h"

namespace talpa::compiler {

std::optional<std::string> bilinear_obstacle(const Graph& graph, const Node& node) {
    const auto& attr = node.as<ResizeAttr>();
    const Value &in = graph[node.inputs[0]], &out = graph[node.outputs[0]];
    if (attr.align_corners) return "it interpolates bilinearly and aligns the corners";
    if (out.shape[1] != 2 * in.shape[1] || out.shape[2] != 2 * in.shape[2])
        return fmt::format("it interpolates bilinearly from {} x {} to {} x {}; twice the size is possible",
                           in.shape[1], in.shape[2], out.shape[1], out.shape[2]);
    if (dtype_size(in.stored_type()) != 1) return "it interpolates 16-bit numbers";
    // PyTorch computes in float32, where noise of the last bit decides which way a half goes.
    if (graph.arithmetic == Arithmetic::Tosa)
        return "it interpolates bilinearly in float32, whose last bit decides which way a half goes";
    return std::nullopt;
}

host::Result<void> lower_bilinear(Lowerer& l, const Node& node) {
    const Graph& graph = l.graph();
    const Value &in = graph[node.inputs[0]], &out = graph[node.outputs[0]];
    const npu::ElementType type = element_type(in.stored_type());
    const bool middle = node.as<ResizeAttr>().half_pixel || l.arithmetic() == Arithmetic::Tosa;
    // One more row and column where the window reaches over the border. The window of the middle form begins inside a
    // repeated pixel, which an address cannot say: its first weight is 0.
    PadAttr border;
    border.mode = PadAttr::Mode::Replicate;
    const std::int64_t before = middle ? 1 : 0;
    border.before = {0, before, before, 0};
    border.after = {0, 1, 1, 0};
    const Shape padded{in.shape[0], in.shape[1] + before + 1, in.shape[2] + before + 1, in.shape[3]};
    const Place from = l.dense_place(l.new_tensor(in.name + "/bordered", type, padded), padded);
    Place inside = from;
    inside.offset += before * (from.strides[1] + from.strides[2]);
    TRY(l.copy(in.shape, type, l.place(node.inputs[0]), inside));
    TRY(pad_around(l, border, in.shape, type, from, 0));
    const std::vector<std::int16_t> taps =
        middle ? std::vector<std::int16_t>{0, 1, 2, 1} : std::vector<std::int16_t>{1, 1};
    const auto size = static_cast<std::uint32_t>(taps.size());
    const auto depth = static_cast<std::uint32_t>(in.shape[3]);
    auto filter = std::make_shared<Filter>();
    filter->depthwise = true;
    filter->shape = {depth, size, size, 1};
    for (std::uint32_t c = 0; c < depth; ++c)
        for (const std::int16_t y : taps)
            for (const std::int16_t x : taps) filter->weights.push_back(static_cast<std::int16_t>(y * x));
    // A 16th or a 4th. The large multiplier makes LiteRT's rounding away from zero exact: its second step then moves a
    // sum by a 32nd, which only matters for halves.
    constexpr std::uint32_t kOne = 0x80000000u;
    filter->records.assign(depth, {0, kOne, static_cast<std::uint8_t>(middle ? 35 : 33)});
    const Place to = l.home_as(node.outputs[0], out.shape);
    for (std::int64_t n = 0; n < in.shape[0]; ++n) {
        Step step;
        step.op = plain_operation(npu::OpKind::Depthwise, type, type);
        step.op.kernel.height = step.op.kernel.width = size;
        step.op.upscale = npu::Upscale::Nearest;
        step.op.ofm_rounding = l.rounding();
        step.op.acc_format = npu::AccFormat::Int32;
        set_limits(step.op, type, limits_of(out, {}));
        const auto ifm = image_view(from, padded, n, 0), ofm = image_view(to, out.shape, n, 0);
        if (!ifm || !ofm)
            return host::failure(ErrorCode::Internal, "{}: its channels do not lie side by side", out.name);
        step.ifm = *ifm;
        step.ofm = *ofm;
        step.filter = filter;
        l.add_step(std::move(step));
    }
    return {};
}

}  // namespace talpa::compiler
