// Resizing of planes: bilinear, nearest. All coordinates in float32. (pte-format, section 6.3)
#include <algorithm>
#include <cmath>

#include "runtime/operators/functions.h"
#include "runtime/operators/window.h"

namespace talpa::runtime::operators {
namespace {

struct Axis {
    std::int64_t in = 0, out = 0;
    double scale = 0;  // 0: not given, the sizes tell
};
struct Resize {
    const Tensor* self = nullptr;
    Tensor* result = nullptr;
    Planes from, to;
    Axis y, x;
};

Result<void> finish_resize(const Arguments& args, Resize& r, std::size_t out_arg) {
    if (r.y.out < 1 || r.x.out < 1 || r.y.in < 1 || r.x.in < 1)
        return args.error(ErrorCode::InvalidArgument, "{}: planes of {} x {} do not resize to {} x {}", r.y.in, r.x.in,
                          r.y.out, r.x.out);
    TRY_ASSIGN(const Shape shape, with_plane_size(args, *r.self, r.y.out, r.x.out));
    TRY_ASSIGN(r.result, out_of_shape(args, out_arg, shape));
    TRY(want_type(args, out_arg, *r.result, r.self->type));
    TRY_ASSIGN(r.to, planes(args, out_arg, *r.result));
    return {};
}

Result<void> read_input(const Arguments& args, Resize& r) {
    TRY_ASSIGN(r.self, computable(args, 0));
    if (r.self->rank != 4)
        return args.error(ErrorCode::InvalidArgument, "{}: argument 0 must have 4 dimensions, has {}",
                          static_cast<unsigned>(r.self->rank));
    TRY_ASSIGN(r.from, planes(args, 0, *r.self));
    r.y.in = r.from.height;
    r.x.in = r.from.width;
    return {};
}

Result<void> read_sizes(const Arguments& args, std::size_t arg, Resize& r) {
    TRY_ASSIGN(const IntList sizes, size_list(args, arg, false));
    if (sizes.count != 2)
        return args.error(ErrorCode::InvalidArgument, "{}: argument {} must have 2 sizes", static_cast<unsigned>(arg));
    r.y.out = sizes[0];
    r.x.out = sizes[1];
    return {};
}

// The .vec forms: exactly one of output size and scale factors; the size is the floor of input × scale.
Result<Resize> read_vec(const Arguments& args, std::size_t size_arg, std::size_t scale_arg, std::size_t out_arg) {
    Resize r;
    TRY(read_input(args, r));
    if (args.is_null(size_arg) == args.is_null(scale_arg))
        return args.error(ErrorCode::InvalidArgument, "{}: exactly one of arguments {} and {} must be given",
                          static_cast<unsigned>(size_arg), static_cast<unsigned>(scale_arg));
    if (args.is_null(scale_arg)) {
        TRY(read_sizes(args, size_arg, r));
    } else {
        TRY_ASSIGN(const auto count, args.list_size(scale_arg));
        if (count != 2)
            return args.error(ErrorCode::InvalidArgument, "{}: argument {} must have 2 scales",
                              static_cast<unsigned>(scale_arg));
        for (std::uint32_t k = 0; k < 2; ++k) {
            Axis& axis = k == 0 ? r.y : r.x;
            TRY_ASSIGN(axis.scale, args.list_double(scale_arg, k));
            const double size = static_cast<double>(axis.in) * axis.scale;
            if (!(axis.scale > 0) || !(size < static_cast<double>(INT32_MAX)))
                return args.error(ErrorCode::InvalidArgument, "{}: item {} of argument {} is no usable scale", k,
                                  static_cast<unsigned>(scale_arg));
            axis.out = static_cast<std::int64_t>(size);
        }
    }
    TRY(finish_resize(args, r, out_arg));
    return r;
}

float ratio_of(const Axis& axis, bool align_corners) {
    if (align_corners) return axis.out > 1 ? static_cast<float>(axis.in - 1) / static_cast<float>(axis.out - 1) : 0.0F;
    return axis.scale > 0 ? static_cast<float>(1.0 / axis.scale)
                          : static_cast<float>(axis.in) / static_cast<float>(axis.out);
}

std::int64_t nearest_source(std::int64_t at, float ratio, const Axis& axis) {
    const float source = std::floor(static_cast<float>(at) * ratio);
    return source < static_cast<float>(axis.in) ? std::min(static_cast<std::int64_t>(source), axis.in - 1)
                                                : axis.in - 1;
}

// The two neighbours of an output place along an axis, and their weights.
struct Neighbours {
    std::int64_t low = 0, high = 0;
    float low_weight = 1, high_weight = 0;
};
Neighbours linear_source(std::int64_t at, float ratio, const Axis& axis, bool align_corners) {
    if (axis.in == axis.out) return {at, at, 1.0F, 0.0F};
    float source = align_corners ? ratio * static_cast<float>(at) : ratio * (static_cast<float>(at) + 0.5F) - 0.5F;
    if (source < 0) source = 0;
    Neighbours n;
    n.low =
        source < static_cast<float>(axis.in) ? std::min(static_cast<std::int64_t>(source), axis.in - 1) : axis.in - 1;
    n.high = std::min(n.low + 1, axis.in - 1);
    n.high_weight = std::min(std::max(source - static_cast<float>(n.low), 0.0F), 1.0F);
    n.low_weight = 1.0F - n.high_weight;
    return n;
}

}  // namespace

Result<void> run_upsample_nearest2d_vec(Arguments& args) {  // input, output_size?, scale_factors?, out
    TRY_ASSIGN(const Resize r, read_vec(args, 1, 2, 3));
    if (r.result->numel() == 0) return {};
    const float y_ratio = ratio_of(r.y, false), x_ratio = ratio_of(r.x, false);
    const std::size_t element = scalar_size(r.self->type);
    for (std::int64_t y = 0; y < r.y.out; ++y) {
        const std::int64_t sy = nearest_source(y, y_ratio, r.y);
        for (std::int64_t x = 0; x < r.x.out; ++x) {
            const std::uint8_t* const from =
                r.self->data + sy * r.from.y_step + nearest_source(x, x_ratio, r.x) * r.from.x_step;
            std::uint8_t* const to = r.result->data + y * r.to.y_step + x * r.to.x_step;
            // All planes at once: the coordinates are the same in each.
            const std::int32_t outer[] = {r.self->sizes[0], r.self->sizes[1]};
            copy_elements(outer, row_major(2), element, to, {r.to.batch_step, r.to.channel_step}, from,
                          {r.from.batch_step, r.from.channel_step});
        }
    }
    return {};
}

Result<void> run_upsample_bilinear2d_vec(Arguments& args) {  // input, output_size?, align_corners, scale_factors?, out
    TRY_ASSIGN(const bool align_corners, args.boolean(2));
    TRY(float_tensor(args, 0));
    TRY_ASSIGN(const Resize r, read_vec(args, 1, 3, 4));
    if (r.result->numel() == 0) return {};
    const float y_ratio = ratio_of(r.y, align_corners), x_ratio = ratio_of(r.x, align_corners);
    for (std::int64_t y = 0; y < r.y.out; ++y) {
        const Neighbours v = linear_source(y, y_ratio, r.y, align_corners);
        for (std::int64_t x = 0; x < r.x.out; ++x) {
            const Neighbours h = linear_source(x, x_ratio, r.x, align_corners);
            for (std::int64_t n = 0; n < r.from.batches; ++n)
                for (std::int64_t c = 0; c < r.from.channels; ++c) {
                    const std::uint8_t* const plane = r.self->data + n * r.from.batch_step + c * r.from.channel_step;
                    const auto at = [&](std::int64_t sy, std::int64_t sx) {
                        return load_one<float>(ScalarType::Float32, plane + sy * r.from.y_step + sx * r.from.x_step);
                    };
                    const float top = at(v.low, h.low) * h.low_weight + at(v.low, h.high) * h.high_weight;
                    const float bottom = at(v.high, h.low) * h.low_weight + at(v.high, h.high) * h.high_weight;
                    const float value = top * v.low_weight + bottom * v.high_weight;
                    store_one(value, ScalarType::Float32,
                              r.result->data + n * r.to.batch_step + c * r.to.channel_step + y * r.to.y_step +
                                  x * r.to.x_step);
                }
        }
    }
    return {};
}

namespace {

// Antialiased: an output place is the average of the inputs under a triangle around it that is as wide as the
// reduction.
struct Triangle {
    std::int64_t first = 0, last = 0;
    float center = 0, inverse_width = 1, total = 0;

    Triangle(std::int64_t at, float ratio, const Axis& axis) {
        const float support = std::max(ratio, 1.0F);
        center = ratio * (static_cast<float>(at) + 0.5F);
        inverse_width = 1.0F / support;
        const auto size = static_cast<float>(axis.in);  // clamped as floats, so that the conversions are defined
        first = static_cast<std::int64_t>(std::clamp(center - support + 0.5F, 0.0F, size));
        last = static_cast<std::int64_t>(std::clamp(center + support + 0.5F, 0.0F, size));
        for (std::int64_t k = first; k < last; ++k) total += height(k);
    }
    [[nodiscard]] float height(std::int64_t k) const {
        return std::max(0.0F, 1.0F - std::fabs((static_cast<float>(k) - center + 0.5F) * inverse_width));
    }
    [[nodiscard]] float weight(std::int64_t k) const { return total == 0 ? 0.0F : height(k) / total; }
};

}  // namespace

Result<void> run_upsample_bilinear2d_aa(Arguments& args) {  // self, output_size, align_corners, scale_h?, scale_w?, out
    TRY(float_tensor(args, 0));
    TRY_ASSIGN(const bool align_corners, args.boolean(2));
    Resize r;
    TRY(read_input(args, r));
    TRY(read_sizes(args, 1, r));
    for (std::size_t k = 0; k < 2; ++k) {
        if (args.is_null(3 + k)) continue;
        TRY_ASSIGN((k == 0 ? r.y : r.x).scale, args.number(3 + k));
    }
    TRY(finish_resize(args, r, 5));
    if (r.result->numel() == 0) return {};
    const float y_ratio = ratio_of(r.y, align_corners), x_ratio = ratio_of(r.x, align_corners);
    for (std::int64_t y = 0; y < r.y.out; ++y) {
        const Triangle v(y, y_ratio, r.y);
        for (std::int64_t x = 0; x < r.x.out; ++x) {
            const Triangle h(x, x_ratio, r.x);
            for (std::int64_t n = 0; n < r.from.batches; ++n)
                for (std::int64_t c = 0; c < r.from.channels; ++c) {
                    const std::uint8_t* const plane = r.self->data + n * r.from.batch_step + c * r.from.channel_step;
                    float value = 0;
                    for (std::int64_t sy = v.first; sy < v.last; ++sy) {
                        float row = 0;
                        for (std::int64_t sx = h.first; sx < h.last; ++sx)
                            row += h.weight(sx) * load_one<float>(ScalarType::Float32,
                                                                  plane + sy * r.from.y_step + sx * r.from.x_step);
                        value += v.weight(sy) * row;
                    }
                    store_one(value, ScalarType::Float32,
                              r.result->data + n * r.to.batch_step + c * r.to.channel_step + y * r.to.y_step +
                                  x * r.to.x_step);
                }
        }
    }
    return {};
}

}  // namespace talpa::runtime::operators
