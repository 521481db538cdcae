// Pools of two dimensions: max with indices, average, adaptive average. (pte-format, section 6.3)
#include <algorithm>
#include <limits>

#include "runtime/operators/functions.h"
#include "runtime/operators/window.h"

namespace talpa::runtime::operators {
namespace {

struct Window2d {
    Window y, x;
};

// Kernel, stride (empty: the kernel) and padding from argument 1 on; dilation where `dilation_arg` names it.
Result<Window2d> read_window(const Arguments& args, std::size_t dilation_arg) {
    TRY_ASSIGN(const Pair kernel, pair(args, 1, 1));
    TRY_ASSIGN(const Pair stride, pair(args, 2, 1, &kernel));
    TRY_ASSIGN(const Pair padding, pair(args, 3, 0));
    Pair dilation{1, 1};
    if (dilation_arg != 0) {
        TRY_ASSIGN(dilation, pair(args, dilation_arg, 1));
    }
    if (padding.y > kernel.y / 2 || padding.x > kernel.x / 2)
        return args.error(ErrorCode::InvalidArgument, "{}: the padding {} x {} is more than half of the kernel",
                          padding.y, padding.x);
    return Window2d{{kernel.y, stride.y, padding.y, dilation.y}, {kernel.x, stride.x, padding.x, dilation.x}};
}

// Calls pixel(plane base, output base, oy, ox) for every output element.
struct Pool {
    Planes in, out;
    const Tensor* self = nullptr;
    Tensor* result = nullptr;
};
Result<Pool> read_pool(const Arguments& args, const Window2d& w, bool ceil, std::size_t out_arg) {
    Pool p;
    TRY_ASSIGN(p.self, computable(args, 0));
    TRY_ASSIGN(p.in, planes(args, 0, *p.self));
    const std::int64_t height = window_count(p.in.height, w.y, ceil);
    const std::int64_t width = window_count(p.in.width, w.x, ceil);
    if (height < 1 || width < 1)
        return args.error(ErrorCode::InvalidArgument, "{}: the window does not fit into {} x {}", p.in.height,
                          p.in.width);
    TRY_ASSIGN(const Shape shape, with_plane_size(args, *p.self, height, width));
    TRY_ASSIGN(p.result, out_of_shape(args, out_arg, shape));
    TRY(want_type(args, out_arg, *p.result, p.self->type));
    if (p.result->numel() != 0 && p.self->numel() == 0)
        return args.error(ErrorCode::InvalidArgument, "{}: argument 0 is empty");
    TRY_ASSIGN(p.out, planes(args, out_arg, *p.result));
    return p;
}

template <typename Pixel>
void for_each_output(const Planes& in, const Planes& out, const std::uint8_t* from, std::uint8_t* to, Pixel&& pixel) {
    for (std::int64_t n = 0; n < out.batches; ++n)
        for (std::int64_t c = 0; c < out.channels; ++c) {
            const std::uint8_t* const plane = moved(from, n * in.batch_step + c * in.channel_step);
            std::uint8_t* const result = moved(to, n * out.batch_step + c * out.channel_step);
            for (std::int64_t y = 0; y < out.height; ++y)
                for (std::int64_t x = 0; x < out.width; ++x)
                    pixel(plane, result + y * out.y_step + x * out.x_step, n, c, y, x);
        }
}

// The rows (or columns) of the input that window number `at` covers: first, one past the last, before clipping by
// padding.
struct Cover {
    std::int64_t first, last;
};
Cover inside(std::int64_t at, const Window& w, std::int64_t size) {
    std::int64_t first = at * w.stride - w.padding;
    const std::int64_t last = std::min(size, first + w.dilation * (w.kernel - 1) + 1);
    if (first < 0) first += (-first + w.dilation - 1) / w.dilation * w.dilation;
    return {first, last};
}

template <typename T>
void max_pool(const Pool& p, const Window2d& w, Tensor& indices, const Planes& index_planes) {
    constexpr T kLowest =
        std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
    const ScalarType type = p.self->type;
    for_each_output(p.in, p.out, p.self->data, p.result->data,
                    [&](const std::uint8_t* plane, std::uint8_t* to, std::int64_t n, std::int64_t c, std::int64_t oy,
                        std::int64_t ox) {
                        const Cover rows = inside(oy, w.y, p.in.height), columns = inside(ox, w.x, p.in.width);
                        T best = kLowest;
                        std::int64_t at = rows.first * p.in.width + columns.first;
                        for (std::int64_t y = rows.first; y < rows.last; y += w.y.dilation)
                            for (std::int64_t x = columns.first; x < columns.last; x += w.x.dilation) {
                                const T v = load_one<T>(type, plane + y * p.in.y_step + x * p.in.x_step);
                                if (v > best || v != v) best = v, at = y * p.in.width + x;
                            }
                        store_one(best, type, to);
                        store_one(at, ScalarType::Int64,
                                  indices.data + n * index_planes.batch_step + c * index_planes.channel_step +
                                      oy * index_planes.y_step + ox * index_planes.x_step);
                    });
}

}  // namespace

Result<void> run_max_pool2d_with_indices(
    Arguments& args) {  // self, kernel, stride, padding, dilation, ceil_mode, out, indices
    TRY_ASSIGN(const Window2d w, read_window(args, 4));
    TRY_ASSIGN(const bool ceil, args.boolean(5));
    TRY_ASSIGN(const Pool p, read_pool(args, w, ceil, 6));
    TRY_ASSIGN(Tensor* const indices, out_of_shape(args, 7, p.result->shape()));
    TRY(want_type(args, 7, *indices, ScalarType::Int64));
    TRY_ASSIGN(const Planes index_planes, planes(args, 7, *indices));
    if (domain_of(p.self->type) == Domain::Float)
        max_pool<float>(p, w, *indices, index_planes);
    else
        max_pool<std::int64_t>(p, w, *indices, index_planes);
    return {};
}

Result<void> run_avg_pool2d(
    Arguments& args) {  // self, kernel, stride, padding, ceil_mode, count_include_pad, divisor?, out
    TRY_ASSIGN(const Window2d w, read_window(args, 0));
    TRY_ASSIGN(const bool ceil, args.boolean(4));
    TRY_ASSIGN(const bool count_padding, args.boolean(5));
    std::int64_t divisor = 0;
    if (!args.is_null(6)) {
        TRY_ASSIGN(divisor, args.integer(6));
        if (divisor == 0) return args.error(ErrorCode::InvalidArgument, "{}: the divisor is 0");
    }
    TRY(float_tensor(args, 0));
    TRY_ASSIGN(const Pool p, read_pool(args, w, ceil, 7));
    for_each_output(
        p.in, p.out, p.self->data, p.result->data,
        [&](const std::uint8_t* plane, std::uint8_t* to, std::int64_t, std::int64_t, std::int64_t oy, std::int64_t ox) {
            const Cover rows = inside(oy, w.y, p.in.height), columns = inside(ox, w.x, p.in.width);
            // With padding the window counts as far as the padding reaches, not beyond.
            const std::int64_t y0 = oy * w.y.stride - w.y.padding, x0 = ox * w.x.stride - w.x.padding;
            const std::int64_t padded = (std::min(y0 + w.y.kernel, p.in.height + w.y.padding) - y0) *
                                        (std::min(x0 + w.x.kernel, p.in.width + w.x.padding) - x0);
            const std::int64_t covered = std::max<std::int64_t>(0, rows.last - rows.first) *
                                         std::max<std::int64_t>(0, columns.last - columns.first);
            float sum = 0;
            for (std::int64_t y = rows.first; y < rows.last; ++y)
                for (std::int64_t x = columns.first; x < columns.last; ++x)
                    sum += load_one<float>(ScalarType::Float32, plane + y * p.in.y_step + x * p.in.x_step);
            const std::int64_t count = divisor != 0 ? divisor : count_padding ? padded : covered;
            store_one(covered == 0 ? 0.0F : sum / static_cast<float>(count), ScalarType::Float32, to);
        });
    return {};
}

Result<void> run_adaptive_avg_pool2d(Arguments& args) {  // self, output_size, out
    TRY_ASSIGN(const Tensor* const self, float_tensor(args, 0));
    TRY_ASSIGN(const Planes in, planes(args, 0, *self));
    TRY_ASSIGN(const Pair size, pair(args, 1, 0));
    TRY_ASSIGN(const Shape shape, with_plane_size(args, *self, size.y, size.x));
    TRY_ASSIGN(Tensor* const result, out_of_shape(args, 2, shape));
    TRY(want_type(args, 2, *result, ScalarType::Float32));
    TRY_ASSIGN(const Planes out, planes(args, 2, *result));
    if (result->numel() != 0 && self->numel() == 0)
        return args.error(ErrorCode::InvalidArgument, "{}: argument 0 is empty");
    for_each_output(
        in, out, self->data, result->data,
        [&](const std::uint8_t* plane, std::uint8_t* to, std::int64_t, std::int64_t, std::int64_t oy, std::int64_t ox) {
            const std::int64_t y0 = oy * in.height / out.height,
                               y1 = ((oy + 1) * in.height + out.height - 1) / out.height;
            const std::int64_t x0 = ox * in.width / out.width, x1 = ((ox + 1) * in.width + out.width - 1) / out.width;
            float sum = 0;
            for (std::int64_t y = y0; y < y1; ++y)
                for (std::int64_t x = x0; x < x1; ++x)
                    sum += load_one<float>(ScalarType::Float32, plane + y * in.y_step + x * in.x_step);
            store_one(sum / static_cast<float>((y1 - y0) * (x1 - x0)), ScalarType::Float32, to);
        });
    return {};
}

}  // namespace talpa::runtime::operators
