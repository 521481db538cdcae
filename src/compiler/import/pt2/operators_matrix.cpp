// Convolutions and matrix products (model-formats, section 1.5).
#include <fmt/format.h>

#include <cmath>

#include "compiler/graph/constant.h"
#include "compiler/graph/infer.h"
#include "compiler/import/pt2/call.h"
#include "compiler/import/weights.h"

namespace talpa::compiler::import::pt2 {
namespace {

using host::failure;
using host::Result;

struct Convolution {
    ValueId x, weight, bias;
    std::vector<std::int64_t> stride, dilation, output_padding;
    std::vector<std::int64_t> before, after;  ///< padding
    std::int64_t groups = 1;
    bool transposed = false;
};

/// Along H and W; what has one spatial dimension lies along W.
Pair pair_of(const std::vector<std::int64_t>& v, std::int64_t missing) {
    return v.size() == 2 ? Pair{v[0], v[1]} : Pair{missing, v[0]};
}

Result<void> convolve(Call& call, Convolution c) {
    Builder& b = call.b;
    const std::size_t dims = c.stride.size();
    TRY_ASSIGN(const SpatialView view, spatial_view(b, c.x, dims));
    const std::string name = call.name();
    TRY_ASSIGN(const ValueId x, to_channels_last(b, c.x, view));
    TRY_ASSIGN(const ValueId weight, c.transposed ? transposed_weight_from_iohw(b, c.weight, c.groups, dims)
                                                  : weight_from_oihw(b, c.weight, dims));
    const Pair before = pair_of(c.before, 0), after = pair_of(c.after, 0);
    ConvAttr attr{.stride = pair_of(c.stride, 1),
                  .dilation = pair_of(c.dilation, 1),
                  .padding = {before[0], before[1], after[0], after[1]},
                  .groups = c.groups};
    if (c.transposed) attr.output_padding = pair_of(c.output_padding, 0);
    TRY_ASSIGN(ValueId y, b.add(c.transposed ? Op::ConvTranspose2d : Op::Conv2d, {x, weight, c.bias}, attr, name));
    TRY_ASSIGN(y, from_channels_last(b, y, view, name));
    call.give(y);
    return {};
}

Result<void> read_common(Call& call, Convolution& c) {
    TRY_ASSIGN(c.x, call.tensor("input"));
    TRY_ASSIGN(c.weight, call.tensor("weight"));
    TRY_ASSIGN(c.bias, call.optional_tensor("bias"));
    return {};
}

Result<std::size_t> dims_of(Call& call, ValueId weight) {
    const auto rank = call.b[weight].shape.size();
    if (rank != 3 && rank != 4)
        return failure(ErrorCode::NotSupported,
                       "a convolution with a weight of shape {}; one and two dimensions are supported",
                       shape_text(call.b[weight].shape));
    return rank - 2;
}

Result<void> import_conv(Call& call, Op op) {
    Convolution c{};
    TRY(read_common(call, c));
    TRY_ASSIGN(const auto dims, dims_of(call, c.weight));
    c.transposed = op == Op::ConvTranspose2d;
    TRY_ASSIGN(c.stride, call.per_dimension("stride", dims, 1));
    TRY_ASSIGN(c.before, call.per_dimension("padding", dims, 0));
    TRY_ASSIGN(c.dilation, call.per_dimension("dilation", dims, 1));
    if (c.transposed) {
        TRY_ASSIGN(c.output_padding, call.per_dimension("output_padding", dims, 0));
    }
    TRY_ASSIGN(c.groups, call.integer("groups", 1));
    c.after = c.before;
    return convolve(call, std::move(c));
}

Result<void> import_conv_padding(Call& call, Op) {
    Convolution c{};
    TRY(read_common(call, c));
    TRY_ASSIGN(const auto dims, dims_of(call, c.weight));
    TRY_ASSIGN(c.stride, call.per_dimension("stride", dims, 1));
    TRY_ASSIGN(c.dilation, call.per_dimension("dilation", dims, 1));
    TRY_ASSIGN(c.groups, call.integer("groups", 1));
    TRY_ASSIGN(const auto padding, call.text("padding", "valid"));
    if (padding != "same" && padding != "valid")
        return failure(ErrorCode::InvalidProgram, "padding '{}': 'same' and 'valid' are known", padding);
    for (std::size_t d = 0; d < dims; ++d) {
        const auto kernel = call.b[c.weight].shape[2 + d];
        if (padding == "same" && c.stride[d] != 1)
            return failure(ErrorCode::InvalidProgram, "padding 'same' needs stride 1");
        if (c.dilation[d] < 1 || c.dilation[d] > INT32_MAX || kernel < 1 || kernel > INT32_MAX)
            return failure(ErrorCode::InvalidProgram, "kernel {}, dilation {}", kernel, c.dilation[d]);
        const auto total = padding == "same" ? c.dilation[d] * (kernel - 1) : 0;
        c.before.push_back(total / 2);
        c.after.push_back(total - total / 2);
    }
    return convolve(call, std::move(c));
}

Result<void> import_convolution(Call& call, Op) {
    Convolution c{};
    TRY(read_common(call, c));
    TRY_ASSIGN(const auto dims, dims_of(call, c.weight));
    TRY_ASSIGN(c.transposed, call.boolean("transposed"));
    TRY_ASSIGN(c.stride, call.per_dimension("stride", dims));
    TRY_ASSIGN(c.before, call.per_dimension("padding", dims));
    TRY_ASSIGN(c.dilation, call.per_dimension("dilation", dims));
    TRY_ASSIGN(c.output_padding, call.per_dimension("output_padding", dims));
    TRY_ASSIGN(c.groups, call.integer("groups"));
    c.after = c.before;
    return convolve(call, std::move(c));
}

Result<void> import_linear(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.tensor("input"));
    TRY_ASSIGN(const auto weight, call.tensor("weight"));
    TRY_ASSIGN(const auto bias, call.optional_tensor("bias"));
    if (!call.b[weight].is_constant())
        return failure(ErrorCode::NotSupported, "the weight is computed; a linear layer's weight must be a constant");
    TRY_ASSIGN(const auto y, call.b.add(Op::FullyConnected, {x, weight, bias}, FullyConnectedAttr{}, call.name()));
    call.give(y);
    return {};
}

/// x * y, as a fully connected layer where y is a constant matrix.
Result<ValueId> product(Call& call, ValueId x, ValueId y, ValueId bias) {
    Builder& b = call.b;
    const Value& matrix = b[y];
    if (matrix.is_constant() && matrix.shape.size() == 2) {
        TRY_ASSIGN(const auto weight, b.permute(y, {1, 0}, matrix.name + ".transposed"));
        return b.add(Op::FullyConnected, {x, weight, bias}, FullyConnectedAttr{}, call.name());
    }
    TRY_ASSIGN(auto result, b.add(Op::MatMul, {x, y}, NoAttr{}, call.name()));
    if (bias != kNoValue) {
        TRY_ASSIGN(result, b.add(Op::Add, {result, bias}, BinaryAttr{}, call.name() + ".bias"));
    }
    return result;
}

Result<void> import_matmul(Call& call, Op) {
    Builder& b = call.b;
    TRY_ASSIGN(auto x, call.tensor("self"));
    TRY_ASSIGN(auto y, call.has("mat2") ? call.tensor("mat2") : call.tensor("other"));
    const bool row = b[x].shape.size() == 1, column = b[y].shape.size() == 1;
    if (row) {
        TRY_ASSIGN(x, b.reshape(x, {1, b[x].shape[0]}, call.name() + ".row"));
    }
    if (column) {
        TRY_ASSIGN(y, b.reshape(y, {b[y].shape[0], 1}, call.name() + ".column"));
    }
    TRY_ASSIGN(auto result, product(call, x, y, kNoValue));
    if (row || column) {
        Shape shape = b[result].shape;
        if (column) shape.pop_back();
        if (row) shape.erase(shape.end() - (column ? 1 : 2));
        TRY_ASSIGN(result, b.reshape(result, shape, call.name() + ".vector"));
    }
    call.give(result);
    return {};
}

Result<void> import_addmm(Call& call, Op) {
    Builder& b = call.b;
    TRY_ASSIGN(const auto bias, call.tensor("self"));
    TRY_ASSIGN(const auto x, call.tensor("mat1"));
    TRY_ASSIGN(const auto y, call.tensor("mat2"));
    TRY_ASSIGN(const auto beta, call.number("beta", 1.0));
    TRY_ASSIGN(const auto alpha, call.number("alpha", 1.0));
    if (alpha != 1.0 || beta != 1.0)
        return failure(ErrorCode::NotSupported, "alpha {} and beta {}: only 1 is supported", alpha, beta);
    const bool fits = b[bias].shape.size() == 1 && b[y].shape.size() == 2 && b[bias].shape[0] == b[y].shape[1];
    TRY_ASSIGN(auto result, product(call, x, y, fits ? bias : kNoValue));
    if (!fits) {
        TRY_ASSIGN(result, b.add(Op::Add, {result, bias}, BinaryAttr{}, call.name() + ".bias"));
    }
    call.give(result);
    return {};
}

/// softmax(q k^T scale + mask) v, spelled out.
Result<void> import_attention(Call& call, Op) {
    Builder& b = call.b;
    TRY_ASSIGN(auto q, call.tensor("query"));
    TRY_ASSIGN(const auto k, call.tensor("key"));
    TRY_ASSIGN(const auto v, call.tensor("value"));
    TRY_ASSIGN(const auto mask, call.optional_tensor("attn_mask"));
    TRY_ASSIGN(const auto dropout, call.number("dropout_p", 0.0));
    TRY_ASSIGN(const auto causal, call.boolean("is_causal", false));
    TRY_ASSIGN(const auto grouped, call.boolean("enable_gqa", false));
    if (dropout != 0 || causal || grouped)
        return failure(ErrorCode::NotSupported, "attention with dropout, a causal mask or grouped queries");
    if (mask != kNoValue && b[mask].type != DType::Float32)
        return failure(ErrorCode::NotSupported, "attention with a boolean mask");
    const auto rank = b[k].shape.size();
    if (rank < 2 || b[q].shape.empty() || b[q].shape.back() < 1)
        return failure(ErrorCode::InvalidProgram, "a query of shape {} and a key of shape {}", shape_text(b[q].shape),
                       shape_text(b[k].shape));
    TRY_ASSIGN(const auto scale, call.number("scale", 1.0 / std::sqrt(static_cast<double>(b[q].shape.back()))));
    const float factor = static_cast<float>(scale);
    const std::string name = call.name();
    const auto constant = b.value(float_constant(name + ".scale", {}, {&factor, 1}));
    std::vector<int> order(rank);
    for (std::size_t d = 0; d < rank; ++d) order[d] = static_cast<int>(d);
    std::swap(order[rank - 1], order[rank - 2]);
    TRY_ASSIGN(const auto turned, b.permute(k, order, name + ".key"));
    TRY_ASSIGN(q, b.add(Op::Mul, {q, constant}, BinaryAttr{}, name + ".query"));
    TRY_ASSIGN(auto scores, b.add(Op::MatMul, {q, turned}, NoAttr{}, name + ".scores"));
    if (mask != kNoValue) {
        TRY_ASSIGN(scores, b.add(Op::Add, {scores, mask}, BinaryAttr{}, name + ".masked"));
    }
    const int last = static_cast<int>(b[scores].shape.size()) - 1;
    TRY_ASSIGN(const auto weights, b.add(Op::Softmax, {scores}, AxisAttr{.axis = last}, name + ".weights"));
    TRY_ASSIGN(const auto y, b.add(Op::MatMul, {weights, v}, NoAttr{}, name));
    call.give(y);
    return {};
}

constexpr Operator kMatrixOperators[] = {
    {"aten.conv2d.default", import_conv, Op::Conv2d},
    {"aten.conv1d.default", import_conv, Op::Conv2d},
    {"aten.conv2d.padding", import_conv_padding},
    {"aten.conv1d.padding", import_conv_padding},
    {"aten.conv_transpose2d.input", import_conv, Op::ConvTranspose2d},
    {"aten.conv_transpose1d.default", import_conv, Op::ConvTranspose2d},
    {"aten.convolution.default", import_convolution},
    {"aten.linear.default", import_linear},
    {"aten.addmm.default", import_addmm},
    {"aten.mm.default", import_matmul},
    {"aten.bmm.default", import_matmul},
    {"aten.matmul.default", import_matmul},
    {"aten.scaled_dot_product_attention.default", import_attention},
};

}  // namespace

std::span<const Operator> matrix_operators() {
    return kMatrixOperators;
}

}  // namespace talpa::compiler::import::pt2
