// What moves elements, and shape arithmetic, which is folded as it comes (model-formats, section 4.2).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/core/checked_math.h"
#include "compiler/graph/constant.h"
#include "compiler/graph/fold.h"
#include "compiler/graph/infer.h"
#include "compiler/import/gather.h"
#include "compiler/import/onnx/call.h"
#include "compiler/import/spatial.h"

namespace talpa::compiler::import::onnx {
namespace {

using host::failure;
using host::Result;
using List = std::vector<std::int64_t>;

Result<void> import_identity(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.moved(0));
    call.ignore({"ratio", "seed", "is_test", "consumed_inputs"});
    if (call.has(2)) {
        TRY_ASSIGN(const auto training, call.constants(2));
        if (training.size() != 1 || training[0] != 0)
            return failure(ErrorCode::NotSupported, "dropout in training mode");
    }
    call.give(x);
    return {};
}

Result<void> give_reshaped(Call& call, ValueId x, const Shape& shape) {
    TRY_ASSIGN(const auto y, call.b.reshape(x, shape, call.name()));
    call.give(y);
    return {};
}

Result<void> import_reshape(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.moved(0));
    TRY_ASSIGN(const auto list, call.numbers("shape", 1));
    TRY_ASSIGN(const auto allow_zero, call.integer("allowzero", 0));
    const Shape from = call.b[x].shape;
    Shape shape = list.value_or(List{});
    std::int64_t known = 1;
    std::int64_t* open = nullptr;
    for (std::size_t d = 0; d < shape.size(); ++d) {
        if (shape[d] == 0 && allow_zero == 0) {
            if (d >= from.size())
                return failure(ErrorCode::InvalidProgram, "dimension {} is copied from rank {}", d, from.size());
            shape[d] = from[d];
        }
        if (shape[d] == -1 && open == nullptr) {
            open = &shape[d];
            continue;
        }
        const auto more = shape[d] < 0 ? std::nullopt : checked_mul(known, shape[d]);
        if (!more) return failure(ErrorCode::InvalidProgram, "shape {}", shape_text(shape));
        known = *more;
    }
    if (open != nullptr) {
        if (known == 0 || element_count(from) % known != 0)
            return failure(ErrorCode::InvalidProgram, "{} does not fill {}", shape_text(from), shape_text(shape));
        *open = element_count(from) / known;
    }
    return give_reshaped(call, x, shape);
}

Result<void> import_flatten(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.moved(0));
    const Shape shape = call.b[x].shape;
    TRY_ASSIGN(auto axis, call.integer("axis", 1));
    if (axis < 0) axis += static_cast<std::int64_t>(shape.size());
    if (axis < 0 || axis > static_cast<std::int64_t>(shape.size()))
        return failure(ErrorCode::InvalidProgram, "axis {}", axis);
    std::int64_t rows = 1, columns = 1;
    for (std::size_t d = 0; d < shape.size(); ++d) (static_cast<std::int64_t>(d) < axis ? rows : columns) *= shape[d];
    return give_reshaped(call, x, {rows, columns});
}

Result<void> import_transpose(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.moved(0));
    const auto rank = call.b[x].shape.size();
    TRY_ASSIGN(const auto perm, call.integers("perm"));
    std::vector<int> order;
    if (perm.empty())
        for (std::size_t d = rank; d-- > 0;) order.push_back(static_cast<int>(d));
    for (const auto d : perm) {
        if (d < 0 || d >= static_cast<std::int64_t>(rank)) return failure(ErrorCode::InvalidProgram, "dimension {}", d);
        order.push_back(static_cast<int>(d));
    }
    auto sorted = order;
    std::ranges::sort(sorted);
    if (order.size() != rank || !is_identity(sorted))
        return failure(ErrorCode::InvalidProgram, "perm names a dimension twice or none");
    TRY_ASSIGN(const auto y, call.b.permute(x, order, call.name()));
    call.give(y);
    return {};
}

Result<void> import_squeeze(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.moved(0));
    const Shape shape = call.b[x].shape;
    TRY_ASSIGN(const auto axes, call.numbers("axes", 1));
    std::vector<bool> gone(shape.size(), !axes);
    for (const auto axis : axes.value_or(List{})) {
        TRY_ASSIGN(const int d, positive_axis(axis, shape.size()));
        if (shape.empty() || shape[static_cast<std::size_t>(d)] != 1)
            return failure(ErrorCode::InvalidProgram, "dimension {} is not 1", d);
        gone[static_cast<std::size_t>(d)] = true;
    }
    Shape out;
    for (std::size_t d = 0; d < shape.size(); ++d)
        if (!gone[d] || shape[d] != 1) out.push_back(shape[d]);
    return give_reshaped(call, x, out);
}

Result<void> import_unsqueeze(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.moved(0));
    const Shape shape = call.b[x].shape;
    TRY_ASSIGN(const auto axes, call.numbers("axes", 1));
    const auto list = axes.value_or(List{});
    const std::size_t rank = shape.size() + list.size();
    std::vector<bool> fresh(rank);
    for (const auto axis : list) {
        TRY_ASSIGN(const int d, positive_axis(axis, rank));
        if (fresh[static_cast<std::size_t>(d)]) return failure(ErrorCode::InvalidProgram, "axis {} stands twice", d);
        fresh[static_cast<std::size_t>(d)] = true;
    }
    Shape out;
    for (std::size_t d = 0, from = 0; d < rank; ++d) out.push_back(fresh[d] ? 1 : shape[from++]);
    return give_reshaped(call, x, out);
}

Result<void> import_concat(Call& call, Op op) {
    std::vector<ValueId> parts;
    for (std::size_t i = 0; i < call.operand_count(); ++i) {
        TRY_ASSIGN(const auto id, call.moved(i));
        parts.push_back(id);
    }
    if (parts.empty()) return failure(ErrorCode::InvalidProgram, "nothing to join");
    TRY_ASSIGN(const auto axis, call.integer("axis"));
    TRY_ASSIGN(const int d, positive_axis(axis, call.b[parts[0]].shape.size()));
    if (parts.size() == 1) return call.give(parts[0]), Result<void>{};
    return call.make(op, parts, AxisAttr{.axis = d});
}

SliceAttr whole(const Shape& shape) {
    return {Shape(shape.size(), 0), shape, Shape(shape.size(), 1)};
}

Result<void> import_split(Call& call, Op op) {
    TRY_ASSIGN(const auto x, call.moved(0));
    const Shape shape = call.b[x].shape;
    TRY_ASSIGN(const auto axis, call.integer("axis", 0));
    TRY_ASSIGN(const int positive, positive_axis(axis, shape.size()));
    TRY_ASSIGN(const auto given, call.numbers("split", 1));
    call.ignore({"num_outputs"});
    const auto d = static_cast<std::size_t>(positive);
    const auto count = static_cast<std::int64_t>(call.result_count());
    if (shape.empty() || count < 1) return failure(ErrorCode::InvalidProgram, "a split of {}", shape_text(shape));
    List sizes = given.value_or(List{});
    if (sizes.empty()) {
        const auto size = (shape[d] + count - 1) / count;
        for (std::int64_t at = 0; at < shape[d] && size > 0; at += size) sizes.push_back(std::min(size, shape[d] - at));
    }
    if (sizes.size() != call.result_count())
        return failure(ErrorCode::InvalidProgram, "{} parts for {} results", sizes.size(), count);
    std::int64_t at = 0;
    for (const auto size : sizes) {
        SliceAttr attr = whole(shape);
        if (size < 0 || size > shape[d] - at) return failure(ErrorCode::InvalidProgram, "a part of {}", size);
        attr.starts[d] = at;
        attr.ends[d] = at += size;
        TRY(call.make(op, {x}, attr));
    }
    return {};
}

Result<void> import_slice(Call& call, Op op) {
    TRY_ASSIGN(const auto x, call.moved(0));
    const Shape shape = call.b[x].shape;
    TRY_ASSIGN(const auto starts, call.numbers("starts", 1));
    TRY_ASSIGN(const auto ends, call.numbers("ends", 2));
    TRY_ASSIGN(const auto axes, call.numbers("axes", 3));
    List steps;
    if (call.has(4)) {
        TRY_ASSIGN(steps, call.constants(4));
    }
    if (!starts || !ends || starts->size() != ends->size() || (axes && axes->size() != starts->size()) ||
        (!steps.empty() && steps.size() != starts->size()))
        return failure(ErrorCode::InvalidProgram, "starts, ends, axes and steps do not belong together");
    SliceAttr attr = whole(shape);
    for (std::size_t i = 0; i < starts->size(); ++i) {
        TRY_ASSIGN(const int positive, positive_axis(axes ? (*axes)[i] : static_cast<std::int64_t>(i), shape.size()));
        if (shape.empty()) return failure(ErrorCode::InvalidProgram, "a slice of a single number");
        const auto d = static_cast<std::size_t>(positive);
        const auto size = shape[d], step = steps.empty() ? 1 : steps[i];
        if (step < 1) return failure(ErrorCode::NotSupported, "a slice with step {}", step);
        const auto clip = [size](std::int64_t v) {
            return v < 0 ? std::max<std::int64_t>(0, v < -size ? 0 : v + size) : std::min(v, size);
        };
        attr.starts[d] = clip((*starts)[i]);
        attr.ends[d] = std::max(attr.starts[d], clip((*ends)[i]));
        attr.steps[d] = std::min(step, std::max<std::int64_t>(size, 1));
    }
    if (attr.starts == Shape(shape.size(), 0) && attr.ends == shape && attr.steps == Shape(shape.size(), 1))
        return call.give(x), Result<void>{};
    return call.make(op, {x}, attr);
}

Result<void> import_pad(Call& call, Op op) {
    TRY_ASSIGN(const auto x, call.moved(0));
    const auto rank = call.b[x].shape.size();
    TRY_ASSIGN(const auto pads, call.numbers("pads", 1));
    TRY_ASSIGN(const auto mode, call.text("mode", "constant"));
    PadAttr attr;
    if (call.opset < 11) {
        TRY_ASSIGN(attr.value, call.real("value", 0));
    } else if (call.has(2)) {
        TRY_ASSIGN(const auto value, call.real_constants(2));
        if (value.size() != 1) return failure(ErrorCode::InvalidProgram, "a value of {} numbers", value.size());
        attr.value = static_cast<double>(value[0]);
    }
    if (call.has(3)) return failure(ErrorCode::NotSupported, "padding of some axes only");
    if (mode == "reflect")
        attr.mode = PadAttr::Mode::Reflect;
    else if (mode == "edge")
        attr.mode = PadAttr::Mode::Replicate;
    else if (mode != "constant")
        return failure(ErrorCode::NotSupported, "padding by '{}'", mode);
    if (!pads || pads->size() != 2 * rank)
        return failure(ErrorCode::InvalidProgram, "{} pads for rank {}", pads ? pads->size() : 0, rank);
    for (std::size_t d = 0; d < 2 * rank; ++d) (d < rank ? attr.before : attr.after).push_back((*pads)[d]);
    return call.make(op, {x}, attr);
}

Result<void> import_gather(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.moved(0));
    TRY_ASSIGN(const auto indices, call.operand(1));
    TRY_ASSIGN(const auto axis, call.integer("axis", 0));
    TRY_ASSIGN(const int d, positive_axis(axis, call.b[x].shape.size()));
    TRY_ASSIGN(const auto y, gather(call.b, x, indices, d, call.name()));
    call.give(y);
    return {};
}

Result<void> import_expand(Call& call, Op op) {
    TRY_ASSIGN(const auto x, call.moved(0));
    TRY_ASSIGN(const auto shape, call.constants(1));
    TRY_ASSIGN(const Shape out, broadcast(call.b[x].shape, shape));
    if (out == call.b[x].shape) return call.give(x), Result<void>{};
    TRY_ASSIGN(const auto y, call.b.add(op, {x}, NoAttr{}, call.name(), out));
    call.give(y);
    return {};
}

Result<void> import_tile(Call& call, Op op) {
    TRY_ASSIGN(auto x, call.moved(0));
    TRY_ASSIGN(const auto repeats, call.constants(1));
    if (repeats.size() != call.b[x].shape.size())
        return failure(ErrorCode::InvalidProgram, "{} repeats", repeats.size());
    for (std::size_t d = 0; d < repeats.size(); ++d) {
        if (repeats[d] < 1 || repeats[d] > 4096) return failure(ErrorCode::NotSupported, "{} repetitions", repeats[d]);
        if (repeats[d] == 1) continue;
        const std::vector<ValueId> parts(static_cast<std::size_t>(repeats[d]), x);
        TRY_ASSIGN(x, call.b.add(op, parts, AxisAttr{.axis = static_cast<int>(d)}, call.name()));
    }
    call.give(x);
    return {};
}

Result<void> import_shape(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.moved(0));
    const Shape shape = call.b[x].shape;
    const auto rank = static_cast<std::int64_t>(shape.size());
    TRY_ASSIGN(auto start, call.integer("start", 0));
    TRY_ASSIGN(auto end, call.integer("end", rank));
    start = std::clamp<std::int64_t>(start < 0 ? start + rank : start, 0, rank);
    end = std::clamp<std::int64_t>(end < 0 ? end + rank : end, start, rank);
    const List part(shape.begin() + start, shape.begin() + end);
    call.give(Bound{call.b.value(int64_constant(call.name(), {end - start}, part)), false});
    return {};
}

Result<void> import_constant(Call& call, Op) {
    Builder& b = call.b;
    if (const Attribute* a = call.attribute("value"); a != nullptr && a->tensor) {
        Value v = a->tensor->value;
        v.name = call.name();
        const bool small = v.type == DType::Int8 || v.type == DType::UInt8;
        call.give(Bound{b.value(std::move(v)), small});
        return {};
    }
    if (const Attribute* a = call.attribute("value_int"); a != nullptr && a->integer) {
        call.give(b.value(int64_constant(call.name(), {}, {&*a->integer, 1})));
        return {};
    }
    if (const Attribute* a = call.attribute("value_ints"); a != nullptr) {
        call.give(b.value(int64_constant(call.name(), {static_cast<std::int64_t>(a->integers.size())}, a->integers)));
        return {};
    }
    if (const Attribute* a = call.attribute("value_float"); a != nullptr && a->real) {
        call.give(b.value(float_constant(call.name(), {}, {&*a->real, 1})));
        return {};
    }
    if (const Attribute* a = call.attribute("value_floats"); a != nullptr) {
        call.give(b.value(float_constant(call.name(), {static_cast<std::int64_t>(a->reals.size())}, a->reals)));
        return {};
    }
    return failure(ErrorCode::NotSupported, "a constant of another kind");
}

Result<void> import_constant_of_shape(Call& call, Op) {
    Builder& b = call.b;
    TRY_ASSIGN(const Shape shape, call.constants(0));
    TRY_ASSIGN(const auto count, checked_count(shape));
    if (count > kFoldLimit) return failure(ErrorCode::OutOfResources, "a constant of {} elements", count);
    const auto n = static_cast<std::size_t>(count);
    const Attribute* a = call.attribute("value");
    if (a != nullptr && a->tensor && a->tensor->value.type != DType::Float32) {
        const auto v = stored_integers(a->tensor->value);
        if (v.empty()) return failure(ErrorCode::InvalidProgram, "an empty value");
        call.give(b.value(int64_constant(call.name(), shape, List(n, v[0]))));
        return {};
    }
    float v = 0;
    if (a != nullptr && a->tensor) {
        const auto reals = real_numbers(a->tensor->value);
        if (!reals.empty()) v = reals[0];
    }
    call.give(b.value(float_constant(call.name(), shape, std::vector<float>(n, v))));
    return {};
}

Result<void> import_range(Call& call, Op) {
    std::int64_t v[3];
    for (const std::size_t i : {0u, 1u, 2u}) {
        TRY_ASSIGN(const auto list, call.constants(i));
        if (list.size() != 1) return failure(ErrorCode::InvalidProgram, "{} numbers", list.size());
        v[i] = list[0];
    }
    for (const auto n : v)
        if (v[2] == 0 || n < -kFoldLimit || n > kFoldLimit)
            return failure(ErrorCode::OutOfResources, "a range from {} to {} by {}", v[0], v[1], v[2]);
    List out;
    for (auto i = v[0]; v[2] > 0 ? i < v[1] : i > v[1]; i += v[2]) out.push_back(i);
    call.give(call.b.value(int64_constant(call.name(), {static_cast<std::int64_t>(out.size())}, out)));
    return {};
}

Result<void> import_cast(Call& call, Op) {
    Builder& b = call.b;
    TRY_ASSIGN(const auto x, call.operand(0));
    TRY_ASSIGN(const auto to, call.integer("to"));
    call.ignore({"saturate"});
    const Value& v = b[x];
    const bool reals = to == 1 || to == 10 || to == 11 || to == 16, integers = to == 6 || to == 7;
    if (v.is_constant() && reals && v.type != DType::Float32) {
        const auto numbers = real_numbers(v);
        call.give(b.value(float_constant(call.name(), v.shape, numbers)));
        return {};
    }
    if (v.is_constant() && integers) {
        List numbers;
        if (v.type == DType::Float32) {
            for (const float f : real_numbers(v)) {
                if (!(std::abs(f) < 9e18F)) return failure(ErrorCode::InvalidProgram, "{} as an integer", f);
                numbers.push_back(static_cast<std::int64_t>(f));
            }
        } else {
            numbers = stored_integers(v);
        }
        call.give(b.value(int64_constant(call.name(), v.shape, numbers)));
        return {};
    }
    if ((reals && v.type == DType::Float32) || (integers && v.type == DType::Int64))
        return call.give(x), Result<void>{};
    return failure(ErrorCode::NotSupported, "a conversion from {} to element type {}", dtype_name(v.type), to);
}

Result<void> import_resize(Call& call, Op op) {
    Builder& b = call.b;
    TRY_ASSIGN(const auto mode, call.text("mode", "nearest"));
    const bool nearest = mode == "nearest";
    TRY_ASSIGN(const auto x, nearest ? call.moved(0) : call.operand(0));
    const Shape shape = b[x].shape;
    if (shape.size() != 4 || (!nearest && mode != "linear"))
        return failure(ErrorCode::NotSupported, "a resize of {} by '{}'", shape_text(shape), mode);
    const bool upsample = call.opset < 11;
    TRY_ASSIGN(const auto coordinates,
               call.text("coordinate_transformation_mode", upsample ? "asymmetric" : "half_pixel"));
    TRY_ASSIGN(const auto rounding, call.text("nearest_mode", upsample ? "floor" : "round_prefer_floor"));
    call.ignore({"cubic_coeff_a", "exclude_outside", "extrapolation_value", "keep_aspect_ratio_policy"});
    TRY_ASSIGN(const auto antialias, call.integer("antialias", 0));
    if (antialias != 0 || call.attribute("axes") != nullptr)
        return failure(ErrorCode::NotSupported, "a resize with antialiasing or axes");
    Shape to = shape;
    const std::size_t scales_at = upsample ? 1 : 2;
    std::vector<float> scales;
    if (const Attribute* a = call.attribute("scales")) scales = a->reals;
    if (call.has(3)) {
        TRY_ASSIGN(to, call.constants(3));
    } else if (scales.empty() && call.has(scales_at)) {
        TRY_ASSIGN(scales, call.real_constants(scales_at));
    }
    if (!scales.empty()) {
        if (scales.size() != 4) return failure(ErrorCode::InvalidProgram, "{} scales", scales.size());
        for (std::size_t d = 0; d < 4; ++d) {
            const double size = static_cast<double>(shape[d]) * static_cast<double>(scales[d]);
            if (!(size >= 1 && size < 65536) || size != std::floor(size))
                return failure(ErrorCode::NotSupported, "{} elements scaled by {}", shape[d], scales[d]);
            to[d] = static_cast<std::int64_t>(size);
        }
    }
    if (to.size() != 4 || to[0] != shape[0] || to[1] != shape[1] || shape[2] < 1 || shape[3] < 1)
        return failure(ErrorCode::NotSupported, "a resize of {} to {}", shape_text(shape), shape_text(to));
    ResizeAttr attr{.mode = nearest ? ResizeAttr::Mode::Nearest : ResizeAttr::Mode::Bilinear};
    attr.align_corners = coordinates == "align_corners";
    attr.half_pixel = coordinates == "half_pixel" || coordinates == "pytorch_half_pixel";
    const bool whole = to[2] % shape[2] == 0 && to[3] % shape[3] == 0;
    // By a whole factor all these sample the same elements.
    if (nearest && whole && (attr.half_pixel || (coordinates == "asymmetric" && rounding == "floor")))
        attr.half_pixel = false;
    else if (nearest && (attr.half_pixel || attr.align_corners || rounding != "floor"))
        return failure(ErrorCode::NotSupported, "nearest by '{}', '{}'", coordinates, rounding);
    TRY_ASSIGN(const auto nhwc, to_channels_last(b, x, {2, true}));
    TRY_ASSIGN(auto y, b.add(op, {nhwc}, attr, call.name(), {to[0], to[2], to[3], to[1]}));
    TRY_ASSIGN(y, from_channels_last(b, y, {2, true}, call.name()));
    call.give(y);
    return {};
}

/// DCR: the block is the outer part of the channels; CRD: the inner (pixel shuffle).
Result<void> import_depth_to_space(Call& call, Op) {
    Builder& b = call.b;
    TRY_ASSIGN(const auto x, call.moved(0));
    TRY_ASSIGN(const auto n, call.integer("blocksize"));
    TRY_ASSIGN(const auto mode, call.text("mode", "DCR"));
    const Shape s = b[x].shape;
    if (s.size() != 4 || n < 1 || n > 256 || s[1] % (n * n) != 0)
        return failure(ErrorCode::InvalidProgram, "blocks of {} in {}", n, shape_text(s));
    const auto c = s[1] / (n * n);
    const std::string name = call.name();
    const bool outer = mode == "DCR";
    TRY_ASSIGN(auto y, b.reshape(x, outer ? Shape{s[0], n, n, c, s[2], s[3]} : Shape{s[0], c, n, n, s[2], s[3]},
                                 name + ".split"));
    TRY_ASSIGN(y, b.permute(y, outer ? std::vector<int>{0, 3, 4, 1, 5, 2} : std::vector<int>{0, 1, 4, 2, 5, 3},
                            name + ".turned"));
    return give_reshaped(call, y, {s[0], c, s[2] * n, s[3] * n});
}

Result<void> import_space_to_depth(Call& call, Op) {
    Builder& b = call.b;
    TRY_ASSIGN(const auto x, call.moved(0));
    TRY_ASSIGN(const auto n, call.integer("blocksize"));
    const Shape s = b[x].shape;
    if (s.size() != 4 || n < 1 || n > 256 || s[2] % n != 0 || s[3] % n != 0)
        return failure(ErrorCode::InvalidProgram, "blocks of {} in {}", n, shape_text(s));
    const std::string name = call.name();
    TRY_ASSIGN(auto y, b.reshape(x, {s[0], s[1], s[2] / n, n, s[3] / n, n}, name + ".split"));
    TRY_ASSIGN(y, b.permute(y, {0, 3, 5, 1, 2, 4}, name + ".turned"));
    return give_reshaped(call, y, {s[0], s[1] * n * n, s[2] / n, s[3] / n});
}

constexpr Operator kShapeOperators[] = {
    {"Identity", import_identity},
    {"Dropout", import_identity},
    {"Reshape", import_reshape},
    {"Flatten", import_flatten},
    {"Transpose", import_transpose},
    {"Squeeze", import_squeeze},
    {"Unsqueeze", import_unsqueeze},
    {"Concat", import_concat, Op::Concat},
    {"Split", import_split, Op::Slice},
    {"Slice", import_slice, Op::Slice},
    {"Pad", import_pad, Op::Pad},
    {"Gather", import_gather, Op::Gather},
    {"Expand", import_expand, Op::Expand},
    {"Tile", import_tile, Op::Concat},
    {"Shape", import_shape},
    {"Constant", import_constant},
    {"ConstantOfShape", import_constant_of_shape},
    {"Range", import_range},
    {"Cast", import_cast},
    {"Resize", import_resize, Op::Resize},
    {"Upsample", import_resize, Op::Resize},
    {"DepthToSpace", import_depth_to_space},
    {"SpaceToDepth", import_space_to_depth},
};

}  // namespace

std::span<const Operator> shape_operators() {
    return kShapeOperators;
}

}  // namespace talpa::compiler::import::onnx
