// Sums so far: a depthwise convolution with ones over as many rows as there are, with nothing in front of the first.
// (ethos-u65, section 9.1)
#include "compiler/graph/cumulative_sum.h"
#include "compiler/lower/lowerer.h"

namespace talpa::compiler {

std::optional<std::string> cumulative_sum_obstacle(const Graph& graph, const Node& node) {
    const Value &in = graph[node.inputs[0]], &out = graph[node.outputs[0]];
    if (dtype_size(in.stored_type()) != 1 || dtype_size(out.stored_type()) != 1) return "it sums 16-bit numbers";
    return sum_extent_obstacle(sum_extent(graph, node));
}

host::Result<void> lower_cumulative_sum(Lowerer& l, const Node& node) {
    const Graph& graph = l.graph();
    const Value &in = graph[node.inputs[0]], &out = graph[node.outputs[0]];
    const npu::ElementType type = element_type(in.stored_type()), ofm = element_type(out.stored_type());
    const SumExtent e = sum_extent(graph, node);
    // Along the last dimension all sums are rows of one map, one channel deep.
    const bool along_rows = e.behind == 1;
    const Shape shape = along_rows ? Shape{1, e.before, e.summed, 1} : Shape{e.before, e.summed, 1, e.behind};
    auto from = reshape(l.place(node.inputs[0]), in.shape, shape);
    if (!from || (e.behind != 1 && from->strides[3] != 1))
        from = reshape(l.contiguous(node.inputs[0], true), in.shape, shape);
    if (!from) return host::failure(ErrorCode::Internal, "{}: no rows in memory", in.name);
    const Place to = l.home_as(node.outputs[0], shape);

    const auto summed = static_cast<std::uint32_t>(e.summed), depth = static_cast<std::uint32_t>(shape[3]);
    auto filter = std::make_shared<Filter>();
    filter->depthwise = true;
    filter->shape = {depth, along_rows ? 1 : summed, along_rows ? summed : 1, 1};
    filter->weights.assign(std::size_t{depth} * summed, 1);
    const npu::Scale scale = l.scale(in.quantization->scales[0] / out.quantization->scales[0]);
    filter->records.assign(depth, {0, scale.multiplier, scale.shift});
    for (std::int64_t n = 0; n < shape[0]; ++n) {
        Step step;
        step.op = plain_operation(npu::OpKind::Depthwise, type, ofm);
        step.op.kernel.height = filter->shape.height;
        step.op.kernel.width = filter->shape.width;
        (along_rows ? step.op.padding.left : step.op.padding.top) = summed - 1;
        step.op.ofm_rounding = l.rounding();
        step.op.acc_format = npu::AccFormat::Int32;
        set_limits(step.op, ofm, limits_of(out, {}));
        const auto read = image_view(*from, shape, n, in.quantization->zero_points[0]),
                   written = image_view(to, shape, n, out.quantization->zero_points[0]);
        if (!read || !written)
            return host::failure(ErrorCode::Internal, "{}: its channels do not lie side by side", out.name);
        step.ifm = *read;
        step.ofm = *written;
        step.filter = filter;
        l.add_step(std::move(step));
    }
    return {};
}

}  // namespace talpa::compiler
