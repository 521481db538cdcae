// Convolutions, matrix products, pools, normalizations, reductions (model-formats, section 4.2).
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "compiler/graph/constant.h"
#include "compiler/graph/infer.h"
#include "compiler/import/onnx/call.h"
#include "compiler/import/spatial.h"
#include "compiler/import/weights.h"

namespace talpa::compiler::import::onnx {
namespace {

using host::failure;
using host::Result;
using List = std::vector<std::int64_t>;

/// What convolutions and pools say about their windows.
struct Windows {
    List kernel, strides, dilations, before, after;
    std::string auto_pad;
    bool ceil = false;
};

Result<Windows> read_windows(Call& call, const List& sizes, List kernel) {
    const std::size_t dims = sizes.size();
    Windows w;
    TRY_ASSIGN(w.kernel, call.integers("kernel_shape", std::move(kernel)));
    TRY_ASSIGN(w.strides, call.integers("strides", List(dims, 1)));
    TRY_ASSIGN(w.dilations, call.integers("dilations", List(dims, 1)));
    TRY_ASSIGN(const auto pads, call.integers("pads", List(2 * dims, 0)));
    TRY_ASSIGN(w.auto_pad, call.text("auto_pad", "NOTSET"));
    if (w.kernel.size() != dims || w.strides.size() != dims || w.dilations.size() != dims || pads.size() != 2 * dims)
        return failure(ErrorCode::InvalidProgram, "kernel, strides, dilations or pads do not have {} dimensions", dims);
    for (std::size_t d = 0; d < dims; ++d) {
        const auto too_large = [](std::int64_t n) { return n > INT32_MAX; };
        if (w.kernel[d] < 1 || w.strides[d] < 1 || w.dilations[d] < 1 || pads[d] < 0 || pads[dims + d] < 0 ||
            too_large(w.kernel[d]) || too_large(w.strides[d]) || too_large(w.dilations[d]) || too_large(pads[d]) ||
            too_large(pads[dims + d]))
            return failure(ErrorCode::InvalidProgram, "kernel {}, stride {}, dilation {}, pads {} and {}", w.kernel[d],
                           w.strides[d], w.dilations[d], pads[d], pads[dims + d]);
        if (w.auto_pad == "SAME_UPPER" || w.auto_pad == "SAME_LOWER") {
            const auto out = (sizes[d] + w.strides[d] - 1) / w.strides[d];
            const auto total =
                std::max<std::int64_t>(0, (out - 1) * w.strides[d] + w.dilations[d] * (w.kernel[d] - 1) + 1 - sizes[d]);
            const auto small = total / 2;
            w.before.push_back(w.auto_pad == "SAME_UPPER" ? small : total - small);
            w.after.push_back(total - w.before.back());
        } else if (w.auto_pad == "NOTSET" || w.auto_pad == "VALID") {
            w.before.push_back(w.auto_pad == "VALID" ? 0 : pads[d]);
            w.after.push_back(w.auto_pad == "VALID" ? 0 : pads[dims + d]);
        } else {
            return failure(ErrorCode::InvalidProgram, "auto_pad '{}'", w.auto_pad);
        }
    }
    return w;
}

Pair pair_of(const List& v, std::int64_t missing) {
    return v.size() == 2 ? Pair{v[0], v[1]} : Pair{missing, v[0]};
}
Edges edges_of(const Windows& w) {
    const Pair before = pair_of(w.before, 0), after = pair_of(w.after, 0);
    return {before[0], before[1], after[0], after[1]};
}

Result<SpatialView> view_of(const Builder& b, ValueId x) {
    const auto rank = b[x].shape.size();
    if (rank != 3 && rank != 4)
        return failure(ErrorCode::NotSupported, "an input of shape {}; one and two spatial dimensions are supported",
                       shape_text(b[x].shape));
    return SpatialView{rank - 2, true};
}

List sizes_of(const Builder& b, ValueId x) {
    return {b[x].shape.begin() + 2, b[x].shape.end()};
}

Result<void> import_conv(Call& call, Op op) {
    Builder& b = call.b;
    TRY_ASSIGN(const auto x, call.operand(0));
    TRY_ASSIGN(const auto w, call.operand(1));
    TRY_ASSIGN(const auto bias, call.optional(2));
    TRY_ASSIGN(const SpatialView view, view_of(b, x));
    if (b[w].shape.size() != view.dims + 2)
        return failure(ErrorCode::InvalidProgram, "a weight of shape {}", shape_text(b[w].shape));
    TRY_ASSIGN(Windows windows, read_windows(call, sizes_of(b, x), List(b[w].shape.begin() + 2, b[w].shape.end())));
    TRY_ASSIGN(const auto groups, call.integer("group", 1));
    ConvAttr attr{.stride = pair_of(windows.strides, 1), .dilation = pair_of(windows.dilations, 1), .groups = groups};
    const bool transposed = op == Op::ConvTranspose2d;
    if (transposed) {
        TRY_ASSIGN(const auto extra, call.integers("output_padding", List(view.dims, 0)));
        TRY_ASSIGN(const auto shape, call.integers("output_shape"));
        if (!shape.empty() || windows.auto_pad.starts_with("SAME") || extra.size() != view.dims)
            return failure(ErrorCode::NotSupported, "a transposed convolution by output_shape or auto_pad");
        attr.output_padding = pair_of(extra, 0);
    }
    attr.padding = edges_of(windows);
    TRY_ASSIGN(const auto nhwc, to_channels_last(b, x, view));
    TRY_ASSIGN(const auto weight,
               transposed ? transposed_weight_from_iohw(b, w, groups, view.dims) : weight_from_oihw(b, w, view.dims));
    TRY_ASSIGN(auto y, b.add(op, {nhwc, weight, bias}, attr, call.name()));
    TRY_ASSIGN(y, from_channels_last(b, y, view, call.name()));
    call.give(y);
    return {};
}

Result<ValueId> scaled(Call& call, ValueId x, double factor, const std::string& name) {
    if (factor == 1.0) return x;
    const float f = static_cast<float>(factor);
    const auto constant = call.b.value(float_constant(name + ".factor", {}, {&f, 1}));
    return call.b.add(Op::Mul, {x, constant}, BinaryAttr{}, name);
}

Result<void> import_gemm(Call& call, Op) {
    Builder& b = call.b;
    TRY_ASSIGN(auto x, call.operand(0));
    TRY_ASSIGN(auto w, call.operand(1));
    TRY_ASSIGN(auto bias, call.optional(2));
    TRY_ASSIGN(const auto alpha, call.real("alpha", 1));
    TRY_ASSIGN(const auto beta, call.real("beta", 1));
    TRY_ASSIGN(const auto ta, call.integer("transA", 0));
    TRY_ASSIGN(const auto tb, call.integer("transB", 0));
    const std::string name = call.name();
    if (ta != 0) {
        TRY_ASSIGN(x, b.permute(x, {1, 0}, name + ".a"));
    }
    TRY_ASSIGN(w, scaled(call, w, alpha, name + ".b"));
    if (bias != kNoValue) {
        TRY_ASSIGN(bias, scaled(call, bias, beta, name + ".c"));
    }
    if (b[w].is_constant() && b[w].shape.size() == 2) {
        if (tb == 0) {
            TRY_ASSIGN(w, b.permute(w, {1, 0}, name + ".w"));
        }
        const auto rows = b[w].shape[0];
        const bool joins = bias != kNoValue && b[bias].is_constant() && element_count(b[bias].shape) == rows;
        ValueId c = kNoValue;
        if (joins) {
            TRY_ASSIGN(c, b.reshape(bias, {rows}, name + ".bias"));
        }
        TRY_ASSIGN(auto y, b.add(Op::FullyConnected, {x, w, c}, FullyConnectedAttr{}, name));
        if (bias != kNoValue && !joins) {
            TRY_ASSIGN(y, b.add(Op::Add, {y, bias}, BinaryAttr{}, name + ".sum"));
        }
        call.give(y);
        return {};
    }
    if (tb != 0) {
        TRY_ASSIGN(w, b.permute(w, {1, 0}, name + ".b"));
    }
    TRY_ASSIGN(auto y, b.add(Op::MatMul, {x, w}, NoAttr{}, name));
    if (bias != kNoValue) {
        TRY_ASSIGN(y, b.add(Op::Add, {y, bias}, BinaryAttr{}, name + ".sum"));
    }
    call.give(y);
    return {};
}

Result<void> import_matmul(Call& call, Op op) {
    Builder& b = call.b;
    TRY_ASSIGN(const auto x, call.operand(0));
    TRY_ASSIGN(const auto y, call.operand(1));
    if (b[y].is_constant() && b[y].shape.size() == 2) {
        TRY_ASSIGN(const auto w, b.permute(y, {1, 0}, call.name() + ".w"));
        return call.make(Op::FullyConnected, {x, w, kNoValue}, FullyConnectedAttr{});
    }
    return call.make(op, {x, y}, NoAttr{});
}

Result<void> import_pool(Call& call, Op op) {
    Builder& b = call.b;
    TRY_ASSIGN(const auto x, op == Op::MaxPool2d ? call.moved(0) : call.operand(0));
    TRY_ASSIGN(const SpatialView view, view_of(b, x));
    const List sizes = sizes_of(b, x);
    TRY_ASSIGN(Windows w, read_windows(call, sizes, {}));
    TRY_ASSIGN(const auto ceil, call.integer("ceil_mode", 0));
    call.ignore({"storage_order"});
    bool padded = false;
    for (std::size_t d = 0; d < view.dims; ++d) {
        padded |= w.before[d] + w.after[d] > 0;
        if (ceil == 0) continue;
        const auto reach = w.dilations[d] * (w.kernel[d] - 1) + 1;
        auto count = (sizes[d] + w.before[d] + w.after[d] - reach + w.strides[d] - 1) / w.strides[d] + 1;
        if ((count - 1) * w.strides[d] >= sizes[d] + w.before[d]) --count;
        const auto needed = (count - 1) * w.strides[d] + reach - sizes[d] - w.before[d];
        if (needed > w.after[d] && op == Op::AvgPool2d && padded)
            return failure(ErrorCode::NotSupported, "an average with padding and ceil_mode");
        w.after[d] = std::max(w.after[d], needed);
    }
    PoolAttr attr{.kernel = pair_of(w.kernel, 1),
                  .stride = pair_of(w.strides, 1),
                  .dilation = pair_of(w.dilations, 1),
                  .padding = edges_of(w)};
    if (op == Op::AvgPool2d) {
        TRY_ASSIGN(const auto include, call.integer("count_include_pad", 0));
        attr.count_include_pad = include != 0 && padded;
    }
    if (call.result_count() > 1 && !call.name(1).empty())
        return failure(ErrorCode::NotSupported, "the indices of a maximum");
    TRY_ASSIGN(const auto nhwc, to_channels_last(b, x, view));
    TRY_ASSIGN(auto y, b.add(op, {nhwc}, attr, call.name()));
    TRY_ASSIGN(y, from_channels_last(b, y, view, call.name()));
    call.give(y);
    return {};
}

std::vector<int> spatial_axes(std::size_t rank) {
    std::vector<int> axes(rank > 2 ? rank - 2 : 0);
    std::iota(axes.begin(), axes.end(), 2);
    return axes;
}

Result<void> import_global_pool(Call& call, Op op) {
    TRY_ASSIGN(const auto x, op == Op::ReduceMax ? call.moved(0) : call.operand(0));
    return call.make(op, {x}, ReduceAttr{spatial_axes(call.b[x].shape.size()), true});
}

Result<void> import_reduce(Call& call, Op op) {
    Builder& b = call.b;
    TRY_ASSIGN(const auto x, call.operand(0));
    const auto rank = b[x].shape.size();
    TRY_ASSIGN(const auto list, call.numbers("axes", 1));
    TRY_ASSIGN(const auto keep, call.integer("keepdims", 1));
    TRY_ASSIGN(const auto noop, call.integer("noop_with_empty_axes", 0));
    std::vector<int> axes;
    for (const auto axis : list.value_or(List{})) {
        TRY_ASSIGN(const int positive, positive_axis(axis, rank));
        axes.push_back(positive);
    }
    if (axes.empty()) {
        if (noop != 0) return call.give(x), Result<void>{};
        axes.resize(rank);
        std::iota(axes.begin(), axes.end(), 0);
    }
    std::ranges::sort(axes);
    return call.make(op, {x}, ReduceAttr{axes, keep != 0});
}

Result<void> import_argmax(Call& call, Op op) {
    TRY_ASSIGN(const auto x, call.operand(0));
    TRY_ASSIGN(const auto axis, call.integer("axis", 0));
    TRY_ASSIGN(const auto keep, call.integer("keepdims", 1));
    TRY_ASSIGN(const auto last, call.integer("select_last_index", 0));
    if (last != 0) return failure(ErrorCode::NotSupported, "select_last_index");
    TRY_ASSIGN(const int positive, positive_axis(axis, call.b[x].shape.size()));
    return call.make(op, {x}, ReduceAttr{{positive}, keep != 0});
}

Result<void> over_channels(Call& call, Op op, ValueId x, const std::vector<ValueId>& parameters, const NormAttr& attr) {
    Builder& b = call.b;
    const auto rank = b[x].shape.size();
    if (rank < 2) return failure(ErrorCode::InvalidProgram, "an input of shape {}", shape_text(b[x].shape));
    std::vector<int> order{0};
    for (std::size_t d = 2; d < rank; ++d) order.push_back(static_cast<int>(d));
    order.push_back(1);
    TRY_ASSIGN(const auto last, b.permute(x, order, b[x].name + ".nhwc"));
    std::vector<ValueId> operands{last};
    operands.insert(operands.end(), parameters.begin(), parameters.end());
    TRY_ASSIGN(auto y, b.add(op, operands, attr, call.name()));
    TRY_ASSIGN(y, b.permute(y, inverse(order), call.name() + ".nchw"));
    call.give(y);
    return {};
}

Result<void> import_batch_norm(Call& call, Op op) {
    TRY_ASSIGN(const auto x, call.operand(0));
    std::vector<ValueId> parameters;
    for (const std::size_t i : {1u, 2u, 3u, 4u}) {
        TRY_ASSIGN(const auto id, call.operand(i));
        parameters.push_back(id);
    }
    TRY_ASSIGN(const auto epsilon, call.real("epsilon", 1e-5));
    TRY_ASSIGN(const auto training, call.integer("training_mode", 0));
    call.ignore({"momentum", "spatial", "is_test"});
    if (training != 0)
        return std::unexpected(
            host::Error(ErrorCode::NotSupported, "batch norm in training mode", "Export the model for inference."));
    return over_channels(call, op, x, parameters, NormAttr{.epsilon = epsilon});
}

Result<void> import_instance_norm(Call& call, Op op) {
    TRY_ASSIGN(const auto x, call.operand(0));
    TRY_ASSIGN(const auto scale, call.operand(1));
    TRY_ASSIGN(const auto bias, call.operand(2));
    TRY_ASSIGN(const auto epsilon, call.real("epsilon", 1e-5));
    const Shape& shape = call.b[x].shape;
    return over_channels(call, op, x, {scale, bias},
                         NormAttr{.epsilon = epsilon, .groups = shape.size() > 1 ? shape[1] : 1});
}

Result<void> import_layer_norm(Call& call, Op op) {
    TRY_ASSIGN(const auto x, call.operand(0));
    TRY_ASSIGN(const auto scale, call.operand(1));
    TRY_ASSIGN(const auto bias, call.optional(2));
    TRY_ASSIGN(const auto axis, call.integer("axis", -1));
    TRY_ASSIGN(const auto epsilon, call.real("epsilon", 1e-5));
    call.ignore({"stash_type"});
    const auto rank = call.b[x].shape.size();
    TRY_ASSIGN(const int first, positive_axis(axis, rank));
    NormAttr attr{.epsilon = epsilon};
    for (auto d = static_cast<std::size_t>(first); d < rank; ++d) attr.axes.push_back(static_cast<int>(d));
    return call.make(op, {x, scale, bias}, attr);
}

Result<void> import_softmax(Call& call, Op op) {
    Builder& b = call.b;
    TRY_ASSIGN(const auto x, call.operand(0));
    const Shape shape = b[x].shape;
    TRY_ASSIGN(const auto axis, call.integer("axis", call.opset < 13 ? 1 : -1));
    TRY_ASSIGN(const int positive, positive_axis(axis, shape.size()));
    const bool last = static_cast<std::size_t>(positive) + 1 == shape.size();
    if (call.opset >= 13 || last) return call.make(op, {x}, AxisAttr{.axis = positive});
    // Before opset 13 all dimensions from the axis on are one.
    std::int64_t rows = 1;
    for (int d = 0; d < positive; ++d) rows *= shape[static_cast<std::size_t>(d)];
    if (rows < 1) return failure(ErrorCode::InvalidProgram, "an input of shape {}", shape_text(shape));
    TRY_ASSIGN(const auto flat, b.reshape(x, {rows, element_count(shape) / rows}, call.name() + ".flat"));
    TRY_ASSIGN(auto y, b.add(op, {flat}, AxisAttr{.axis = 1}, call.name()));
    TRY_ASSIGN(y, b.reshape(y, shape, call.name() + ".shaped"));
    call.give(y);
    return {};
}

constexpr Operator kLayerOperators[] = {
    {"Conv", import_conv, Op::Conv2d},
    {"ConvTranspose", import_conv, Op::ConvTranspose2d},
    {"Gemm", import_gemm},
    {"MatMul", import_matmul, Op::MatMul},
    {"MaxPool", import_pool, Op::MaxPool2d},
    {"AveragePool", import_pool, Op::AvgPool2d},
    {"GlobalAveragePool", import_global_pool, Op::Mean},
    {"GlobalMaxPool", import_global_pool, Op::ReduceMax},
    {"ReduceMean", import_reduce, Op::Mean},
    {"ReduceSum", import_reduce, Op::Sum},
    {"ReduceMax", import_reduce, Op::ReduceMax},
    {"ReduceMin", import_reduce, Op::ReduceMin},
    {"ArgMax", import_argmax, Op::ArgMax},
    {"BatchNormalization", import_batch_norm, Op::BatchNorm},
    {"InstanceNormalization", import_instance_norm, Op::GroupNorm},
    {"LayerNormalization", import_layer_norm, Op::LayerNorm},
    {"Softmax", import_softmax, Op::Softmax},
    {"LogSoftmax", import_softmax, Op::LogSoftmax},
};

}  // namespace

std::span<const Operator> layer_operators() {
    return kLayerOperators;
}

}  // namespace talpa::compiler::import::onnx
