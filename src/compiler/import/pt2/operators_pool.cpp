// Pooling and reductions (model-formats, section 1.5).
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "compiler/graph/infer.h"
#include "compiler/import/pt2/call.h"

namespace talpa::compiler::import::pt2 {
namespace {

using host::failure;
using host::Result;

/// One spatial dimension of a pool.
struct Axis {
    std::int64_t in, kernel, stride, padding, dilation;
    std::int64_t after = 0;  ///< padding at the end, with what rounding up adds
};

/// With ceil_mode a last, partial window counts if it starts inside the input or the padding before it.
Result<void> round_up_axis(Axis& a) {
    if (a.kernel < 1 || a.stride < 1 || a.dilation < 1 || a.padding < 0)
        return failure(ErrorCode::InvalidProgram, "kernel {}, stride {}, dilation {}, padding {}", a.kernel, a.stride,
                       a.dilation, a.padding);
    const auto reach = a.dilation * (a.kernel - 1) + 1;
    auto count = (a.in + 2 * a.padding - reach + a.stride - 1) / a.stride + 1;
    if ((count - 1) * a.stride >= a.in + a.padding) --count;
    a.after = std::max(a.padding, (count - 1) * a.stride + reach - a.in - a.padding);
    return {};
}

Result<std::vector<Axis>> read_axes(Call& call, ValueId x, SpatialView view, bool& partial) {
    std::vector<Axis> axes;
    TRY_ASSIGN(const auto kernel, call.per_dimension("kernel_size", view.dims));
    TRY_ASSIGN(auto strides, call.integers("stride", std::vector<std::int64_t>{}));
    if (strides.empty()) strides = kernel;
    if (strides.size() == 1) strides.assign(view.dims, strides[0]);
    if (strides.size() != view.dims) return failure(ErrorCode::InvalidProgram, "{} strides", strides.size());
    TRY_ASSIGN(const auto padding, call.per_dimension("padding", view.dims, 0));
    TRY_ASSIGN(const auto dilation, call.per_dimension("dilation", view.dims, 1));
    TRY_ASSIGN(const bool up, call.boolean("ceil_mode", false));
    const Shape& shape = call.b[x].shape;
    for (std::size_t d = 0; d < view.dims; ++d) {
        Axis a{shape[shape.size() - view.dims + d], kernel[d], strides[d], padding[d], dilation[d], padding[d]};
        for (const auto n : {kernel[d], strides[d], dilation[d]})
            if (n < 1 || n > INT32_MAX)
                return failure(ErrorCode::InvalidProgram, "kernel {}, stride {}, dilation {}", kernel[d], strides[d],
                               dilation[d]);
        if (padding[d] < 0 || padding[d] > kernel[d] / 2)
            return failure(ErrorCode::InvalidProgram, "padding {} is more than half of the kernel {}", padding[d],
                           kernel[d]);
        if (up) TRY(round_up_axis(a));
        partial |= a.after > a.padding;
        axes.push_back(a);
    }
    if (view.dims == 1) axes.insert(axes.begin(), Axis{1, 1, 1, 0, 1, 0});
    return axes;
}

Result<void> pool(Call& call, Op op, ValueId x, std::size_t dims) {
    Builder& b = call.b;
    TRY_ASSIGN(const SpatialView view, spatial_view(b, x, dims));
    bool partial = false;
    TRY_ASSIGN(const auto axes, read_axes(call, x, view, partial));
    PoolAttr attr{.kernel = {axes[0].kernel, axes[1].kernel},
                  .stride = {axes[0].stride, axes[1].stride},
                  .dilation = {axes[0].dilation, axes[1].dilation},
                  .padding = {axes[0].padding, axes[1].padding, axes[0].after, axes[1].after}};
    if (op == Op::AvgPool2d) {
        TRY_ASSIGN(attr.count_include_pad, call.boolean("count_include_pad", true));
        TRY_ASSIGN(attr.divisor, call.integer("divisor_override", 0));
        if (call.has("divisor_override") && attr.divisor < 1)
            return failure(ErrorCode::InvalidProgram, "divisor_override {}", attr.divisor);
        const bool padded = axes[0].padding > 0 || axes[1].padding > 0;
        if (partial && attr.count_include_pad) {
            // A partial window is divided by its part inside the padded input; without padding that is what is valid.
            if (padded)
                return failure(ErrorCode::NotSupported, "an average with padding, ceil_mode and count_include_pad");
            attr.count_include_pad = false;
        }
        if (!padded && !partial) attr.count_include_pad = false;
    }
    const std::string name = call.name();
    TRY_ASSIGN(const auto nhwc, to_channels_last(b, x, view));
    TRY_ASSIGN(auto y, b.add(op, {nhwc}, attr, name));
    TRY_ASSIGN(y, from_channels_last(b, y, view, name));
    call.give(y);
    return {};
}

Result<void> import_pool2d(Call& call, Op op) {
    TRY_ASSIGN(const auto x, op == Op::MaxPool2d ? call.moved("self") : call.tensor("self"));
    TRY(pool(call, op, x, 2));
    if (call.result_names().size() == 2) call.give(kNoValue);  // the indices, refused if something reads them
    return {};
}

Result<void> import_pool1d(Call& call, Op op) {
    TRY_ASSIGN(const auto x, op == Op::MaxPool2d ? call.moved("self") : call.tensor("self"));
    return pool(call, op, x, 1);
}

std::vector<int> last_axes(std::size_t rank, std::size_t count) {
    std::vector<int> axes(count);
    std::iota(axes.begin(), axes.end(), static_cast<int>(rank - count));
    return axes;
}

Result<void> import_adaptive(Call& call, Op op) {
    Builder& b = call.b;
    TRY_ASSIGN(const auto x, call.tensor("self"));
    const bool is_max = op == Op::MaxPool2d;
    TRY_ASSIGN(const auto size, call.integers("output_size"));
    const std::size_t dims = size.size();
    if (dims != 1 && dims != 2) return failure(ErrorCode::InvalidProgram, "output size of {} numbers", dims);
    TRY_ASSIGN(const SpatialView view, spatial_view(b, x, dims));
    const Shape shape = b[x].shape;
    bool global = true, whole = true;
    Pair kernel{1, 1};
    for (std::size_t d = 0; d < dims; ++d) {
        const auto in = shape[shape.size() - dims + d];
        global &= size[d] == 1;
        if (size[d] < 1) return failure(ErrorCode::InvalidProgram, "output size {}", size[d]);
        whole &= in % size[d] == 0;
        kernel[2 - dims + d] = in / size[d];
    }
    if (global) {
        TRY_ASSIGN(const auto y,
                   b.add(is_max ? Op::ReduceMax : Op::Mean, {x},
                         ReduceAttr{.axes = last_axes(shape.size(), dims), .keep_dims = true}, call.name()));
        call.give(y);
    } else if (whole) {
        TRY_ASSIGN(const auto nhwc, to_channels_last(b, x, view));
        TRY_ASSIGN(auto y, b.add(op, {nhwc}, PoolAttr{.kernel = kernel, .stride = kernel}, call.name()));
        TRY_ASSIGN(y, from_channels_last(b, y, view, call.name()));
        call.give(y);
    } else {
        return std::unexpected(
            host::Error(ErrorCode::NotSupported,
                        fmt::format("{} is pooled to {} windows of unequal size", shape_text(shape), shape_text(size)),
                        "Use an output size that divides the input's, or an average pool with a fixed kernel."));
    }
    if (call.result_names().size() == 2) call.give(kNoValue);
    return {};
}

Result<std::vector<int>> read_axes_list(Call& call, std::string_view name, std::size_t rank) {
    TRY_ASSIGN(auto dims, call.integers(name, std::vector<std::int64_t>{}));
    std::vector<int> axes;
    for (auto d : dims) {
        if (d < 0) d += static_cast<std::int64_t>(rank);
        if (d < 0 || d >= static_cast<std::int64_t>(rank))
            return failure(ErrorCode::InvalidProgram, "dimension {} of a tensor of rank {}", d, rank);
        axes.push_back(static_cast<int>(d));
    }
    std::ranges::sort(axes);
    if (std::ranges::adjacent_find(axes) != axes.end())
        return failure(ErrorCode::InvalidProgram, "a dimension is named twice");
    if (axes.empty()) axes = last_axes(rank, rank);
    return axes;
}

Result<void> import_reduce(Call& call, Op op) {
    const bool picks = op == Op::ReduceMax || op == Op::ReduceMin;
    TRY_ASSIGN(const auto x, picks ? call.moved("self") : call.tensor("self"));
    TRY_ASSIGN(const auto axes, read_axes_list(call, "dim", call.b[x].shape.size()));
    TRY_ASSIGN(const bool keep, call.boolean("keepdim", false));
    if (call.has("dtype")) {
        TRY_ASSIGN(const auto type, call.dtype("dtype"));
        if (type != RawType::Float32) return failure(ErrorCode::NotSupported, "a result of type {}", raw_name(type));
    }
    TRY_ASSIGN(const auto y, call.b.add(op, {x}, ReduceAttr{axes, keep}, call.name()));
    call.give(y);
    return {};
}

/// max.dim and min.dim: values and indices.
Result<void> import_reduce_with_indices(Call& call, Op op) {
    TRY(import_reduce(call, op));
    call.give(kNoValue);
    return {};
}

Result<void> import_argmax(Call& call, Op op) {
    Builder& b = call.b;
    TRY_ASSIGN(auto x, call.tensor("self"));
    const auto rank = b[x].shape.size();
    if (!call.has("dim")) {
        call.ignore({"dim", "keepdim"});
        TRY_ASSIGN(x, b.reshape(x, {element_count(b[x].shape)}, call.name() + ".flat"));
        TRY_ASSIGN(const auto y, b.add(op, {x}, ReduceAttr{{0}, false}, call.name()));
        call.give(y);
        return {};
    }
    TRY_ASSIGN(const int dim, call.dimension("dim", rank));
    TRY_ASSIGN(const bool keep, call.boolean("keepdim", false));
    TRY_ASSIGN(const auto y, b.add(op, {x}, ReduceAttr{{dim}, keep}, call.name()));
    call.give(y);
    return {};
}

Result<void> import_cumsum(Call& call, Op op) {
    TRY_ASSIGN(const auto x, call.tensor("self"));
    TRY_ASSIGN(const int dim, call.dimension("dim", call.b[x].shape.size()));
    call.ignore({"dtype"});
    TRY_ASSIGN(const auto y, call.b.add(op, {x}, ReduceAttr{{dim}, true}, call.name()));
    call.give(y);
    return {};
}

constexpr Operator kPoolOperators[] = {
    {"aten.max_pool2d.default", import_pool2d, Op::MaxPool2d},
    {"aten.max_pool2d_with_indices.default", import_pool2d, Op::MaxPool2d},
    {"aten.max_pool1d.default", import_pool1d, Op::MaxPool2d},
    {"aten.avg_pool2d.default", import_pool2d, Op::AvgPool2d},
    {"aten.avg_pool1d.default", import_pool1d, Op::AvgPool2d},
    {"aten.adaptive_avg_pool2d.default", import_adaptive, Op::AvgPool2d},
    {"aten._adaptive_avg_pool2d.default", import_adaptive, Op::AvgPool2d},
    {"aten.adaptive_avg_pool1d.default", import_adaptive, Op::AvgPool2d},
    {"aten.adaptive_max_pool2d.default", import_adaptive, Op::MaxPool2d},
    {"aten.mean.dim", import_reduce, Op::Mean},
    {"aten.mean.default", import_reduce, Op::Mean},
    {"aten.sum.dim_IntList", import_reduce, Op::Sum},
    {"aten.sum.default", import_reduce, Op::Sum},
    {"aten.amax.default", import_reduce, Op::ReduceMax},
    {"aten.amin.default", import_reduce, Op::ReduceMin},
    {"aten.max.dim", import_reduce_with_indices, Op::ReduceMax},
    {"aten.min.dim", import_reduce_with_indices, Op::ReduceMin},
    {"aten.argmax.default", import_argmax, Op::ArgMax},
    {"aten.cumsum.default", import_cumsum, Op::CumSum},
};

}  // namespace

std::span<const Operator> pool_operators() {
    return kPoolOperators;
}

}  // namespace talpa::compiler::import::pt2
