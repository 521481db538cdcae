// Operators that move elements, and the names of those that are refused (model-formats, section 3.4).
#include <fmt/format.h>

#include <algorithm>

#include "compiler/graph/constant.h"
#include "compiler/graph/infer.h"
#include "compiler/import/gather.h"
#include "compiler/import/tflite/call.h"

namespace talpa::compiler::import::tflite {
namespace {

using host::failure;
using host::Result;

Result<void> import_concat(Call& call, Op op) {
    std::vector<ValueId> parts;
    for (std::size_t i = 0; i < call.operand_count(); ++i) {
        TRY_ASSIGN(const auto id, call.operand(i));
        parts.push_back(id);
    }
    if (parts.empty()) return failure(ErrorCode::InvalidProgram, "nothing to join");
    TRY_ASSIGN(const auto axis, call.option<std::int32_t>(0, 0));
    TRY_ASSIGN(const int positive, positive_axis(axis, call.b[parts[0]].shape.size()));
    TRY_ASSIGN(const auto clamp, call.activation(1));
    if (clamp.any()) {
        TRY_ASSIGN(const auto joined, call.b.add(op, parts, AxisAttr{.axis = positive}, call.name() + ".joined"));
        return call.make(Op::ClampOp, {joined}, UnaryAttr{.clamp = clamp});
    }
    return call.make(op, parts, AxisAttr{.axis = positive});
}

/// RESHAPE, SQUEEZE, EXPAND_DIMS: the result's shape is in the file.
Result<void> import_reshape(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.operand(0));
    TRY_ASSIGN(const auto y, call.b.reshape(x, call.result().shape, call.name()));
    return call.give(y);
}

Result<void> import_transpose(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.operand(0));
    TRY_ASSIGN(const auto order, call.axes(1, call.b[x].shape.size()));
    auto sorted = order;
    std::ranges::sort(sorted);
    if (!is_identity(sorted) || order.size() != call.b[x].shape.size())
        return failure(ErrorCode::InvalidProgram, "its order names a dimension twice or none");
    TRY_ASSIGN(const auto y, call.b.permute(x, order, call.name()));
    return call.give(y);
}

Result<PadAttr> read_pads(Call& call, std::size_t rank) {
    TRY_ASSIGN(const auto pads, call.numbers(1));
    if (pads.size() != 2 * rank) return failure(ErrorCode::InvalidProgram, "{} numbers for rank {}", pads.size(), rank);
    PadAttr attr;
    for (std::size_t d = 0; d < rank; ++d) {
        attr.before.push_back(pads[2 * d]);
        attr.after.push_back(pads[2 * d + 1]);
    }
    return attr;
}

Result<void> import_pad(Call& call, Op op) {
    TRY_ASSIGN(const auto x, call.operand(0));
    TRY_ASSIGN(PadAttr attr, read_pads(call, call.b[x].shape.size()));
    if (call.optional(2) != kNoValue) {
        const Value& v = call.b[call.optional(2)];
        if (!v.is_constant() || element_count(v.shape) != 1)
            return failure(ErrorCode::NotSupported, "padding by a computed number");
        attr.value = static_cast<double>(real_numbers(v)[0]);
    }
    return call.make(op, {x}, attr);
}

Result<void> import_mirror_pad(Call& call, Op op) {
    TRY_ASSIGN(const auto x, call.operand(0));
    TRY_ASSIGN(PadAttr attr, read_pads(call, call.b[x].shape.size()));
    TRY_ASSIGN(const auto mode, call.option<std::int8_t>(0, 0));
    attr.mode = mode == 0 ? PadAttr::Mode::Reflect : PadAttr::Mode::Symmetric;
    return call.make(op, {x}, attr);
}

Result<void> cut(Call& call, ValueId x, SliceAttr attr) {
    const Shape& shape = call.b[x].shape;
    if (attr.starts == Shape(shape.size(), 0) && attr.ends == shape && attr.steps == Shape(shape.size(), 1))
        return call.give(x);
    return call.make(Op::Slice, {x}, std::move(attr));
}

SliceAttr whole(const Shape& shape) {
    return {Shape(shape.size(), 0), shape, Shape(shape.size(), 1)};
}

Result<void> import_slice(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.operand(0));
    TRY_ASSIGN(const auto begin, call.numbers(1));
    TRY_ASSIGN(const auto size, call.numbers(2));
    SliceAttr attr = whole(call.b[x].shape);
    if (begin.size() != attr.ends.size() || size.size() != attr.ends.size())
        return failure(ErrorCode::InvalidProgram, "{} begins for rank {}", begin.size(), attr.ends.size());
    for (std::size_t d = 0; d < begin.size(); ++d) {
        const auto limit = attr.ends[d];
        if (begin[d] < 0 || begin[d] > limit || size[d] < -1 || (size[d] >= 0 && size[d] > limit - begin[d]))
            return failure(ErrorCode::InvalidProgram, "{} elements from {} of {}", size[d], begin[d], limit);
        attr.starts[d] = begin[d];
        if (size[d] >= 0) attr.ends[d] = begin[d] + size[d];
    }
    return cut(call, x, std::move(attr));
}

Result<void> import_strided_slice(Call& call, Op) {
    TRY_ASSIGN(auto x, call.operand(0));
    TRY_ASSIGN(const auto begin, call.numbers(1));
    TRY_ASSIGN(const auto end, call.numbers(2));
    TRY_ASSIGN(const auto step, call.numbers(3));
    std::int32_t masks[5];
    for (unsigned i = 0; i < 5; ++i) {
        TRY_ASSIGN(masks[i], call.option<std::int32_t>(i, 0));
    }
    const auto [begin_mask, end_mask, ellipsis, new_axis, shrink] = masks;
    if (ellipsis != 0 || new_axis != 0)
        return failure(ErrorCode::NotSupported, "a slice with an ellipsis or a new axis");
    SliceAttr attr = whole(call.b[x].shape);
    const auto rank = attr.ends.size();
    if (begin.size() > rank || end.size() != begin.size() || step.size() != begin.size())
        return failure(ErrorCode::InvalidProgram, "{} begins for rank {}", begin.size(), rank);
    for (std::size_t d = 0; d < begin.size(); ++d) {
        const auto size = attr.ends[d];
        if (step[d] < 1) return failure(ErrorCode::NotSupported, "a slice with step {}", step[d]);
        const auto clip = [size](std::int64_t i) { return std::clamp<std::int64_t>(i < 0 ? i + size : i, 0, size); };
        const bool single = (shrink >> d & 1) != 0;
        if (single && (begin[d] < -size || begin[d] >= size))
            return failure(ErrorCode::InvalidProgram, "index {} of {}", begin[d], size);
        if ((begin_mask >> d & 1) == 0 || single) attr.starts[d] = clip(begin[d]);
        if (single)
            attr.ends[d] = attr.starts[d] + 1;
        else if ((end_mask >> d & 1) == 0)
            attr.ends[d] = std::max(attr.starts[d], clip(end[d]));
        attr.steps[d] = step[d];
    }
    if (shrink == 0) return cut(call, x, std::move(attr));
    TRY_ASSIGN(x, call.b.add(Op::Slice, {x}, attr, call.name() + ".part"));
    TRY_ASSIGN(const auto y, call.b.reshape(x, call.result().shape, call.name()));
    return call.give(y);
}

Result<void> give_parts(Call& call, ValueId x, std::size_t axis, const std::vector<std::int64_t>& sizes) {
    if (sizes.size() != call.result_count())
        return failure(ErrorCode::InvalidProgram, "{} parts for {} results", sizes.size(), call.result_count());
    std::int64_t at = 0;
    for (const auto size : sizes) {
        SliceAttr attr = whole(call.b[x].shape);
        if (size < 0 || size > attr.ends[axis] - at) return failure(ErrorCode::InvalidProgram, "a part of {}", size);
        attr.starts[axis] = at;
        attr.ends[axis] = at += size;
        TRY(cut(call, x, std::move(attr)));
    }
    return {};
}

Result<void> import_split(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.operand(1));
    TRY_ASSIGN(const auto axis, call.axes(0, call.b[x].shape.size()));
    const auto count = static_cast<std::int64_t>(call.result_count());
    if (axis.size() != 1 || count == 0) return failure(ErrorCode::InvalidProgram, "{} axes", axis.size());
    const auto d = static_cast<std::size_t>(axis[0]);
    if (call.b[x].shape[d] % count != 0)
        return failure(ErrorCode::InvalidProgram, "{} elements in {} parts", call.b[x].shape[d], count);
    return give_parts(call, x, d, std::vector<std::int64_t>(call.result_count(), call.b[x].shape[d] / count));
}

Result<void> import_split_v(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.operand(0));
    TRY_ASSIGN(auto sizes, call.numbers(1));
    TRY_ASSIGN(const auto axis, call.axes(2, call.b[x].shape.size()));
    if (axis.size() != 1) return failure(ErrorCode::InvalidProgram, "{} axes", axis.size());
    const auto d = static_cast<std::size_t>(axis[0]);
    std::int64_t known = 0;
    for (const auto s : sizes) known += std::clamp<std::int64_t>(s, 0, call.b[x].shape[d]);
    if (const auto open = std::ranges::find(sizes, -1); open != sizes.end()) *open = call.b[x].shape[d] - known;
    return give_parts(call, x, d, sizes);
}

Result<void> import_pack(Call& call, Op) {
    Builder& b = call.b;
    TRY_ASSIGN(const auto axis_option, call.option<std::int32_t>(1, 0));
    TRY_ASSIGN(const int axis, positive_axis(axis_option, call.result().shape.size()));
    std::vector<ValueId> parts;
    for (std::size_t i = 0; i < call.operand_count(); ++i) {
        TRY_ASSIGN(auto part, call.operand(i));
        Shape shape = b[part].shape;
        if (shape.size() < static_cast<std::size_t>(axis)) return failure(ErrorCode::InvalidProgram, "ranks differ");
        shape.insert(shape.begin() + axis, 1);
        TRY_ASSIGN(part, b.reshape(part, shape, call.name() + ".part"));
        parts.push_back(part);
    }
    if (parts.empty()) return failure(ErrorCode::InvalidProgram, "nothing to pack");
    return call.make(Op::Concat, parts, AxisAttr{.axis = axis});
}

Result<void> import_unpack(Call& call, Op) {
    Builder& b = call.b;
    TRY_ASSIGN(const auto x, call.operand(0));
    const Shape shape = b[x].shape;
    TRY_ASSIGN(const auto axis_option, call.option<std::int32_t>(1, 0));
    TRY_ASSIGN(const int axis, positive_axis(axis_option, shape.size()));
    const auto d = static_cast<std::size_t>(axis);
    if (shape[d] != static_cast<std::int64_t>(call.result_count()))
        return failure(ErrorCode::InvalidProgram, "{} results of {}", call.result_count(), shape[d]);
    for (std::size_t i = 0; i < call.result_count(); ++i) {
        SliceAttr attr = whole(shape);
        attr.starts[d] = static_cast<std::int64_t>(i);
        attr.ends[d] = attr.starts[d] + 1;
        TRY_ASSIGN(const auto part, b.add(Op::Slice, {x}, attr, call.name(i) + ".part"));
        TRY_ASSIGN(const auto y, b.reshape(part, call.result(i).shape, call.name(i)));
        TRY(call.give(y));
    }
    return {};
}

Result<void> import_gather(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.operand(0));
    TRY_ASSIGN(const auto indices, call.operand(1));
    TRY_ASSIGN(const auto axis_option, call.option<std::int32_t>(0, 0));
    TRY_ASSIGN(const auto batch, call.option<std::int32_t>(1, 0));
    if (batch != 0) return failure(ErrorCode::NotSupported, "batch_dims {}", batch);
    TRY_ASSIGN(const int axis, positive_axis(axis_option, call.b[x].shape.size()));
    TRY_ASSIGN(const auto y, gather(call.b, x, indices, axis, call.name()));
    return call.give(y);
}

/// Channels to space and back; the block's rows and columns are the outer dimensions of the channels.
Result<void> import_depth_to_space(Call& call, Op) {
    Builder& b = call.b;
    TRY_ASSIGN(const auto x, call.operand(0));
    TRY_ASSIGN(const auto block, call.option<std::int32_t>(0, 0));
    const Shape s = b[x].shape;
    const std::int64_t n = block;
    if (s.size() != 4 || n < 1 || n > 4096 || s[3] % (n * n) != 0)
        return failure(ErrorCode::InvalidProgram, "blocks of {} in {}", n, shape_text(s));
    const std::string name = call.name();
    TRY_ASSIGN(auto y, b.reshape(x, {s[0], s[1], s[2], n, n, s[3] / (n * n)}, name + ".split"));
    TRY_ASSIGN(y, b.permute(y, {0, 1, 3, 2, 4, 5}, name + ".turned"));
    TRY_ASSIGN(y, b.reshape(y, {s[0], s[1] * n, s[2] * n, s[3] / (n * n)}, name));
    return call.give(y);
}

Result<void> import_space_to_depth(Call& call, Op) {
    Builder& b = call.b;
    TRY_ASSIGN(const auto x, call.operand(0));
    TRY_ASSIGN(const auto block, call.option<std::int32_t>(0, 0));
    const Shape s = b[x].shape;
    const std::int64_t n = block;
    if (s.size() != 4 || n < 1 || n > 4096 || s[1] % n != 0 || s[2] % n != 0)
        return failure(ErrorCode::InvalidProgram, "blocks of {} in {}", n, shape_text(s));
    const std::string name = call.name();
    TRY_ASSIGN(auto y, b.reshape(x, {s[0], s[1] / n, n, s[2] / n, n, s[3]}, name + ".split"));
    TRY_ASSIGN(y, b.permute(y, {0, 1, 3, 2, 4, 5}, name + ".turned"));
    TRY_ASSIGN(y, b.reshape(y, {s[0], s[1] / n, s[2] / n, n * n * s[3]}, name));
    return call.give(y);
}

Result<void> import_shape(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.operand(0));
    const Shape shape = call.b[x].shape;
    return call.give(call.b.value(int64_constant(call.name(), {static_cast<std::int64_t>(shape.size())}, shape)));
}

constexpr Operator kMovementOperators[] = {
    {2, "CONCATENATION", import_concat, Op::Concat, 10},
    {22, "RESHAPE", import_reshape},
    {43, "SQUEEZE", import_reshape},
    {70, "EXPAND_DIMS", import_reshape},
    {39, "TRANSPOSE", import_transpose},
    {34, "PAD", import_pad, Op::Pad},
    {60, "PADV2", import_pad, Op::Pad},
    {100, "MIRROR_PAD", import_mirror_pad, Op::Pad, 77},
    {65, "SLICE", import_slice},
    {45, "STRIDED_SLICE", import_strided_slice, Op::Slice, 32},
    {49, "SPLIT", import_split},
    {102, "SPLIT_V", import_split_v},
    {83, "PACK", import_pack, Op::Concat, 59},
    {88, "UNPACK", import_unpack, Op::Slice, 64},
    {36, "GATHER", import_gather, Op::Gather, 23},
    {5, "DEPTH_TO_SPACE", import_depth_to_space, Op::Permute, 94},
    {26, "SPACE_TO_DEPTH", import_space_to_depth, Op::Permute, 19},
    {77, "SHAPE", import_shape},
};

constexpr Operator kRefused[] = {
    {44, "UNIDIRECTIONAL_SEQUENCE_LSTM", nullptr},
    {16, "LSTM", nullptr},
    {35, "UNIDIRECTIONAL_SEQUENCE_RNN", nullptr},
    {52, "BIDIRECTIONAL_SEQUENCE_LSTM", nullptr},
    {27, "SVDF", nullptr},
    {129, "CALL_ONCE", nullptr},
    {142, "VAR_HANDLE", nullptr},
    {143, "READ_VARIABLE", nullptr},
    {144, "ASSIGN_VARIABLE", nullptr},
    {118, "IF", nullptr},
    {119, "WHILE", nullptr},
    {53, "CAST", nullptr},
    {37, "BATCH_TO_SPACE_ND", nullptr},
    {38, "SPACE_TO_BATCH_ND", nullptr},
    {11, "L2_NORMALIZATION", nullptr},
    {79, "ARG_MIN", nullptr},
    {7, "EMBEDDING_LOOKUP", nullptr},
};

}  // namespace

std::span<const Operator> movement_operators() {
    return kMovementOperators;
}
std::span<const Operator> refused_operators() {
    return kRefused;
}

}  // namespace talpa::compiler::import::tflite
