// What makes pictures larger or smaller: padding and resizing (model-formats, section 1.5).
#include <algorithm>

#include "compiler/import/pt2/call.h"

namespace talpa::compiler::import::pt2 {
namespace {

using host::failure;
using host::Result;

Result<void> pad(Call& call, PadAttr::Mode mode, std::string_view argument, double value) {
    Builder& b = call.b;
    TRY_ASSIGN(const auto x, call.moved("self"));
    TRY_ASSIGN(const auto pads, call.integers(argument));
    const Shape shape = b[x].shape;
    if (pads.size() % 2 != 0 || pads.size() / 2 > shape.size())
        return failure(ErrorCode::InvalidProgram, "{} numbers of padding for rank {}", pads.size(), shape.size());
    PadAttr attr{.mode = mode, .before = Shape(shape.size(), 0), .after = Shape(shape.size(), 0), .value = value};
    SliceAttr crop{Shape(shape.size(), 0), shape, Shape(shape.size(), 1)};
    for (std::size_t i = 0; i < pads.size() / 2; ++i) {
        const std::size_t d = shape.size() - 1 - i;  // pairs count from the last dimension backwards
        const auto left = pads[2 * i], right = pads[2 * i + 1];
        if (left < -shape[d] || right < -shape[d])
            return failure(ErrorCode::InvalidProgram, "padding {} {}", left, right);
        attr.before[d] = std::max<std::int64_t>(left, 0);
        attr.after[d] = std::max<std::int64_t>(right, 0);
        crop.starts[d] = std::max<std::int64_t>(-left, 0);
        crop.ends[d] = shape[d] - std::max<std::int64_t>(-right, 0);
    }
    ValueId y = x;
    if (crop.starts != Shape(shape.size(), 0) || crop.ends != shape) {
        TRY_ASSIGN(y, b.add(Op::Slice, {y}, crop, call.name() + ".crop"));
    }
    if (attr.before != Shape(shape.size(), 0) || attr.after != Shape(shape.size(), 0)) {
        TRY_ASSIGN(y, b.add(Op::Pad, {y}, attr, call.name()));
    }
    call.give(y);
    return {};
}

Result<void> import_pad(Call& call, Op) {
    TRY_ASSIGN(const auto mode, call.text("mode", "constant"));
    TRY_ASSIGN(const auto value, call.number("value", 0.0));
    if (mode == "constant") return pad(call, PadAttr::Mode::Constant, "pad", value);
    if (mode == "reflect") return pad(call, PadAttr::Mode::Reflect, "pad", 0);
    if (mode == "replicate") return pad(call, PadAttr::Mode::Replicate, "pad", 0);
    return failure(ErrorCode::NotSupported, "padding by '{}'", mode);
}

Result<void> import_constant_pad(Call& call, Op) {
    TRY_ASSIGN(const auto value, call.number("value", 0.0));
    return pad(call, PadAttr::Mode::Constant, "pad", value);
}
Result<void> import_reflection_pad(Call& call, Op) {
    return pad(call, PadAttr::Mode::Reflect, "padding", 0);
}
Result<void> import_replication_pad(Call& call, Op) {
    return pad(call, PadAttr::Mode::Replicate, "padding", 0);
}

/// The size that is asked for, or that scale factors give.
Result<Pair> resized(Call& call, const Shape& shape) {
    const std::int64_t in[2] = {shape[2], shape[3]};
    if (call.has("output_size")) {
        TRY_ASSIGN(const auto size, call.integers("output_size"));
        if (size.size() != 2) return failure(ErrorCode::InvalidProgram, "output_size has {} numbers", size.size());
        call.ignore({"scale_factors", "scales_h", "scales_w"});
        return Pair{size[0], size[1]};
    }
    call.ignore({"output_size"});
    TRY_ASSIGN(const auto scales, call.numbers("scale_factors"));
    if (scales.size() != 2) return failure(ErrorCode::InvalidProgram, "scale_factors has {} numbers", scales.size());
    Pair out{};
    for (const std::size_t d : {0u, 1u}) {
        const double size = static_cast<double>(in[d]) * scales[d];
        if (!(size >= 1 && size < 65536)) return failure(ErrorCode::InvalidProgram, "scale factor {}", scales[d]);
        out[d] = static_cast<std::int64_t>(size);
        // Sampling goes by the factor, not by the sizes: they agree where no part of an element is dropped.
        if (static_cast<double>(out[d]) != size)
            return failure(ErrorCode::NotSupported, "{} elements scaled by {} are no whole number", in[d], scales[d]);
    }
    return out;
}

Result<void> resize(Call& call, ResizeAttr attr) {
    Builder& b = call.b;
    TRY_ASSIGN(const auto x, attr.mode == ResizeAttr::Mode::Nearest ? call.moved("input") : call.tensor("input"));
    TRY_ASSIGN(const SpatialView view, spatial_view(b, x, 2));
    if (!view.batched) return failure(ErrorCode::InvalidProgram, "an input without batch dimension");
    TRY_ASSIGN(const Pair size, resized(call, b[x].shape));
    TRY_ASSIGN(const auto nhwc, to_channels_last(b, x, view));
    const Shape from = b[nhwc].shape;
    TRY_ASSIGN(auto y, b.add(Op::Resize, {nhwc}, attr, call.name(), {from[0], size[0], size[1], from[3]}));
    TRY_ASSIGN(y, from_channels_last(b, y, view, call.name()));
    call.give(y);
    return {};
}

Result<void> import_nearest(Call& call, Op) {
    return resize(call, {.mode = ResizeAttr::Mode::Nearest});
}

Result<void> import_bilinear(Call& call, Op) {
    TRY_ASSIGN(const bool align, call.boolean("align_corners"));
    return resize(call, {.mode = ResizeAttr::Mode::Bilinear, .align_corners = align, .half_pixel = !align});
}

constexpr Operator kResizeOperators[] = {
    {"aten.pad.default", import_pad},
    {"aten.constant_pad_nd.default", import_constant_pad},
    {"aten.reflection_pad2d.default", import_reflection_pad},
    {"aten.replication_pad2d.default", import_replication_pad},
    {"aten.upsample_nearest2d.vec", import_nearest},
    {"aten.upsample_nearest2d.default", import_nearest},
    {"aten.upsample_bilinear2d.vec", import_bilinear},
    {"aten.upsample_bilinear2d.default", import_bilinear},
};

}  // namespace

std::span<const Operator> resize_operators() {
    return kResizeOperators;
}

}  // namespace talpa::compiler::import::pt2
