// What only renames elements, or puts them into another order (model-formats, section 1.5).
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/core/checked_math.h"
#include "compiler/graph/constant.h"
#include "compiler/graph/infer.h"
#include "compiler/import/pt2/call.h"

namespace talpa::compiler::import::pt2 {
namespace {

using host::failure;
using host::Result;

Result<void> import_identity(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.moved(call.has("self") ? "self" : "input"));
    call.ignore(
        {"memory_format", "p", "train", "dtype", "non_blocking", "copy", "layout", "device", "pin_memory", "implicit"});
    call.give(x);
    return {};
}

Result<void> import_dropout(Call& call, Op op) {
    TRY_ASSIGN(const bool train, call.boolean("train", false));
    if (train)
        return std::unexpected(host::Error(ErrorCode::NotSupported, "dropout in training mode",
                                           "Call model.eval() before torch.export.export."));
    return import_identity(call, op);
}

/// to.dtype and _to_copy: only where nothing changes.
Result<void> import_cast(Call& call, Op op) {
    TRY_ASSIGN(const auto x, call.moved("self"));
    if (call.has("dtype")) {
        TRY_ASSIGN(const auto type, call.dtype("dtype"));
        const Value& v = call.b[x];
        if (v.is_constant() && !v.quantization && type == RawType::Float32 && v.type != DType::Float32) {
            const auto reals = real_numbers(v);
            call.give(call.b.value(float_constant(call.name(), v.shape, reals)));
            call.ignore({"memory_format", "non_blocking", "copy", "layout", "device", "pin_memory"});
            return {};
        }
        const bool same = (v.type == DType::Float32 && type == RawType::Float32) ||
                          (v.type == DType::Int64 && type == RawType::Int64) ||
                          (v.type == DType::Int32 && type == RawType::Int32);
        if (!same)
            return failure(ErrorCode::NotSupported, "a conversion from {} to {}", dtype_name(v.type), raw_name(type));
    }
    return import_identity(call, op);
}

Result<void> give_reshaped(Call& call, ValueId x, const Shape& shape) {
    TRY_ASSIGN(const auto y, call.b.reshape(x, shape, call.name()));
    call.give(y);
    return {};
}

/// One entry may be -1.
Result<Shape> completed(Shape shape, std::int64_t count) {
    std::int64_t known = 1;
    std::int64_t* open = nullptr;
    for (auto& size : shape) {
        if (size == -1 && open == nullptr) {
            open = &size;
            continue;
        }
        const auto more = size < 0 ? std::nullopt : checked_mul(known, size);
        if (!more) return failure(ErrorCode::InvalidProgram, "shape {}", shape_text(shape));
        known = *more;
    }
    if (open != nullptr) {
        if (known == 0 || count % known != 0)
            return failure(ErrorCode::InvalidProgram, "{} elements do not fill {}", count, shape_text(shape));
        *open = count / known;
    }
    return shape;
}

Result<void> import_view(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.moved("self"));
    TRY_ASSIGN(auto shape, call.has("size") ? call.integers("size") : call.integers("shape"));
    TRY_ASSIGN(shape, completed(std::move(shape), element_count(call.b[x].shape)));
    return give_reshaped(call, x, shape);
}

Result<void> import_flatten(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.moved("self"));
    const Shape shape = call.b[x].shape;
    TRY_ASSIGN(const int first, call.dimension("start_dim", shape.size(), 0));
    TRY_ASSIGN(const int last, call.dimension("end_dim", shape.size(), -1));
    if (shape.empty()) return give_reshaped(call, x, {1});
    if (first > last) return failure(ErrorCode::InvalidProgram, "flatten from {} to {}", first, last);
    Shape out(shape.begin(), shape.begin() + first);
    std::int64_t joined = 1;
    for (int d = first; d <= last; ++d) joined *= shape[static_cast<std::size_t>(d)];
    out.push_back(joined);
    out.insert(out.end(), shape.begin() + last + 1, shape.end());
    return give_reshaped(call, x, out);
}

Result<void> import_unflatten(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.moved("self"));
    const Shape shape = call.b[x].shape;
    TRY_ASSIGN(const int dim, call.dimension("dim", shape.size()));
    TRY_ASSIGN(auto sizes, call.integers("sizes"));
    if (shape.empty()) return failure(ErrorCode::InvalidProgram, "unflatten of a single number");
    TRY_ASSIGN(sizes, completed(std::move(sizes), shape[static_cast<std::size_t>(dim)]));
    Shape out(shape.begin(), shape.begin() + dim);
    out.insert(out.end(), sizes.begin(), sizes.end());
    out.insert(out.end(), shape.begin() + dim + 1, shape.end());
    return give_reshaped(call, x, out);
}

Result<void> import_squeeze(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.moved("self"));
    const Shape shape = call.b[x].shape;
    std::vector<bool> gone(shape.size(), !call.has("dim"));
    if (call.has("dim")) {
        TRY_ASSIGN(const auto dims, call.integers("dim"));
        for (auto d : dims) {
            if (d < 0) d += static_cast<std::int64_t>(shape.size());
            if (d < 0 || d >= static_cast<std::int64_t>(shape.size()))
                return failure(ErrorCode::InvalidProgram, "dimension {} of rank {}", d, shape.size());
            gone[static_cast<std::size_t>(d)] = true;
        }
    }
    Shape out;
    for (std::size_t d = 0; d < shape.size(); ++d)
        if (!gone[d] || shape[d] != 1) out.push_back(shape[d]);
    return give_reshaped(call, x, out);
}

Result<void> import_unsqueeze(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.moved("self"));
    Shape out = call.b[x].shape;
    TRY_ASSIGN(const int dim, call.dimension("dim", out.size() + 1));
    out.insert(out.begin() + dim, 1);
    return give_reshaped(call, x, out);
}

Result<void> give_permuted(Call& call, ValueId x, std::vector<int> order) {
    TRY_ASSIGN(const auto y, call.b.permute(x, std::move(order), call.name()));
    call.give(y);
    return {};
}

std::vector<int> counting(std::size_t rank) {
    std::vector<int> order(rank);
    std::iota(order.begin(), order.end(), 0);
    return order;
}

Result<void> import_permute(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.moved("self"));
    const auto rank = static_cast<std::int64_t>(call.b[x].shape.size());
    TRY_ASSIGN(const auto dims, call.integers("dims"));
    if (dims.size() != static_cast<std::size_t>(rank))
        return failure(ErrorCode::InvalidProgram, "{} dims", dims.size());
    std::vector<int> order;
    for (const auto d : dims) {
        if (d < -rank || d >= rank) return failure(ErrorCode::InvalidProgram, "dimension {} of rank {}", d, rank);
        order.push_back(static_cast<int>(d < 0 ? d + rank : d));
    }
    auto sorted = order;
    std::ranges::sort(sorted);
    if (!is_identity(sorted)) return failure(ErrorCode::InvalidProgram, "a dimension is named twice");
    return give_permuted(call, x, std::move(order));
}

Result<void> import_transpose(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.moved("self"));
    auto order = counting(call.b[x].shape.size());
    TRY_ASSIGN(const int a, call.dimension("dim0", order.size()));
    TRY_ASSIGN(const int c, call.dimension("dim1", order.size()));
    if (!order.empty()) std::swap(order[static_cast<std::size_t>(a)], order[static_cast<std::size_t>(c)]);
    return give_permuted(call, x, std::move(order));
}

Result<void> import_t(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.moved("self"));
    auto order = counting(call.b[x].shape.size());
    if (order.size() > 2) return failure(ErrorCode::InvalidProgram, "t() of rank {}", order.size());
    std::ranges::reverse(order);
    return give_permuted(call, x, std::move(order));
}

Result<void> import_expand(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.moved("self"));
    TRY_ASSIGN(auto shape, call.integers("size"));
    call.ignore({"implicit"});
    const Shape from = call.b[x].shape;
    if (shape.size() < from.size()) return failure(ErrorCode::InvalidProgram, "expand to {}", shape_text(shape));
    const std::size_t lead = shape.size() - from.size();
    for (std::size_t d = 0; d < shape.size(); ++d)
        if (shape[d] == -1 && d >= lead) shape[d] = from[d - lead];
    if (shape == from) return call.give(x), Result<void>{};
    TRY_ASSIGN(const auto y, call.b.add(Op::Expand, {x}, NoAttr{}, call.name(), shape));
    call.give(y);
    return {};
}

/// Tiling along one dimension after the other is a concatenation with itself.
Result<void> import_repeat(Call& call, Op) {
    TRY_ASSIGN(auto x, call.moved("self"));
    TRY_ASSIGN(const auto repeats, call.integers("repeats"));
    Shape shape = call.b[x].shape;
    if (repeats.size() < shape.size()) return failure(ErrorCode::InvalidProgram, "{} repeats", repeats.size());
    shape.insert(shape.begin(), repeats.size() - shape.size(), 1);
    TRY_ASSIGN(x, call.b.reshape(x, shape, call.name() + ".lead"));
    for (std::size_t d = 0; d < repeats.size(); ++d) {
        if (repeats[d] < 1 || repeats[d] > 4096) return failure(ErrorCode::NotSupported, "{} repetitions", repeats[d]);
        if (repeats[d] == 1) continue;
        const std::vector<ValueId> parts(static_cast<std::size_t>(repeats[d]), x);
        TRY_ASSIGN(x, call.b.add(Op::Concat, parts, AxisAttr{.axis = static_cast<int>(d)}, call.name()));
    }
    call.give(x);
    return {};
}

/// [N, C r^2, H, W] -> [N, C, H r, W r]
Result<void> import_pixel_shuffle(Call& call, Op) {
    Builder& b = call.b;
    TRY_ASSIGN(const auto x, call.moved("self"));
    TRY_ASSIGN(const auto r, call.integer("upscale_factor"));
    const Shape s = b[x].shape;
    if (s.size() != 4 || r < 1 || r > 256 || s[1] % (r * r) != 0)
        return failure(ErrorCode::InvalidProgram, "pixel_shuffle of {} by {}", shape_text(s), r);
    const auto c = s[1] / (r * r);
    TRY_ASSIGN(auto y, b.reshape(x, {s[0], c, r, r, s[2], s[3]}, call.name() + ".split"));
    TRY_ASSIGN(y, b.permute(y, {0, 1, 4, 2, 5, 3}, call.name() + ".turned"));
    return give_reshaped(call, y, {s[0], c, s[2] * r, s[3] * r});
}

Result<void> import_channel_shuffle(Call& call, Op) {
    Builder& b = call.b;
    TRY_ASSIGN(const auto x, call.moved("self"));
    TRY_ASSIGN(const auto groups, call.integer("groups"));
    const Shape s = b[x].shape;
    if (s.size() != 4 || groups < 1 || s[1] % groups != 0)
        return failure(ErrorCode::InvalidProgram, "channel_shuffle of {} by {}", shape_text(s), groups);
    TRY_ASSIGN(auto y, b.reshape(x, {s[0], groups, s[1] / groups, s[2], s[3]}, call.name() + ".split"));
    TRY_ASSIGN(y, b.permute(y, {0, 2, 1, 3, 4}, call.name() + ".turned"));
    return give_reshaped(call, y, s);
}

constexpr auto kView = Operator::Sharing::View;
constexpr Operator kShapeOperators[] = {
    {"aten.contiguous.default", import_identity, Op::Reshape, kView},
    {"aten.clone.default", import_identity},
    {"aten.alias.default", import_identity, Op::Reshape, kView},
    {"aten.detach.default", import_identity, Op::Reshape, kView},
    {"aten.detach_.default", import_identity, Op::Reshape, kView},
    {"aten.lift_fresh_copy.default", import_identity},
    {"aten.dropout.default", import_dropout, Op::Reshape, kView},
    {"aten.feature_dropout.default", import_dropout, Op::Reshape, kView},
    {"aten.to.dtype", import_cast, Op::Reshape, kView},
    {"aten.to.dtype_layout", import_cast, Op::Reshape, kView},
    {"aten._to_copy.default", import_cast},
    {"aten.view.default", import_view, Op::Reshape, kView},
    {"aten.reshape.default", import_view, Op::Reshape, kView},
    {"aten._unsafe_view.default", import_view, Op::Reshape, kView},
    {"aten.flatten.using_ints", import_flatten, Op::Reshape, kView},
    {"aten.unflatten.int", import_unflatten, Op::Reshape, kView},
    {"aten.squeeze.default", import_squeeze, Op::Reshape, kView},
    {"aten.squeeze.dim", import_squeeze, Op::Reshape, kView},
    {"aten.squeeze.dims", import_squeeze, Op::Reshape, kView},
    {"aten.unsqueeze.default", import_unsqueeze, Op::Reshape, kView},
    {"aten.permute.default", import_permute, Op::Permute, kView},
    {"aten.permute_copy.default", import_permute, Op::Permute},
    {"aten.transpose.int", import_transpose, Op::Permute, kView},
    {"aten.t.default", import_t, Op::Permute, kView},
    {"aten.expand.default", import_expand, Op::Expand, kView},
    {"aten.repeat.default", import_repeat},
    {"aten.pixel_shuffle.default", import_pixel_shuffle},
    {"aten.channel_shuffle.default", import_channel_shuffle},
};

}  // namespace

std::span<const Operator> shape_operators() {
    return kShapeOperators;
}

}  // namespace talpa::compiler::import::pt2
