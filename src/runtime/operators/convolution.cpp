// convolution.out: one or two dimensions, groups, dilation, transposed; float32. Each output is the sum over input
// channels, kernel rows and kernel columns in this order, then the bias. (pte-format, section 6.1, tier 5)
#include <algorithm>

#include "runtime/operators/functions.h"
#include "runtime/operators/window.h"

namespace talpa::runtime::operators {
namespace {

struct Axis {
    std::int64_t in = 1, kernel = 1, out = 1, stride = 1, padding = 0, dilation = 1, output_padding = 0;
    std::int64_t in_step = 0, kernel_step = 0, out_step = 0;  // in elements
};

struct Convolution {
    const float* input = nullptr;
    const float* weight = nullptr;
    const float* bias = nullptr;
    float* out = nullptr;
    std::int64_t batches = 0, groups = 1;
    std::int64_t group_in = 0, group_out = 0;  // channels of a group
    std::int64_t in_batch = 0, in_channel = 0, out_batch = 0, out_channel = 0, weight_out = 0,
                 weight_in = 0;  // steps in elements
    Axis y, x;
    bool transposed = false;
};

// Outputs `o` for which o·stride - padding + k·dilation lies in [0, in).
struct Span {
    std::int64_t first, last;
};
Span outputs_in_reach(const Axis& a, std::int64_t k) {
    const std::int64_t shift = k * a.dilation - a.padding;
    const std::int64_t first = shift >= 0 ? 0 : (-shift + a.stride - 1) / a.stride;
    const std::int64_t last = a.in - shift <= 0 ? 0 : (a.in - shift + a.stride - 1) / a.stride;
    return {std::min(first, a.out), std::min(last, a.out)};
}

// to[n] += w · from[n]. Dense rows go eight at a time, all read before any is written, which compilers turn into
// vectors.
void add_row(const float* from, std::int64_t from_step, float* to, std::int64_t to_step, std::int64_t n, float w) {
    constexpr std::int64_t kBlock = 8;
    if (from_step == 1 && to_step == 1) {
        for (; n >= kBlock; n -= kBlock, from += kBlock, to += kBlock) {
            float sum[kBlock];
            for (std::int64_t k = 0; k < kBlock; ++k) sum[k] = to[k] + w * from[k];
            for (std::int64_t k = 0; k < kBlock; ++k) to[k] = sum[k];
        }
    }
    for (; n > 0; --n, from += from_step, to += to_step) *to += w * *from;
}

// Adds one weight times a shifted input plane to an output plane.
void add_plane(const Convolution& c, const float* in, float* out, float w, std::int64_t ky, std::int64_t kx) {
    const Span rows = outputs_in_reach(c.y, ky), columns = outputs_in_reach(c.x, kx);
    const std::int64_t step = c.x.stride * c.x.in_step;
    for (std::int64_t oy = rows.first; oy < rows.last; ++oy) {
        const std::int64_t iy = oy * c.y.stride - c.y.padding + ky * c.y.dilation;
        const std::int64_t ix = columns.first * c.x.stride - c.x.padding + kx * c.x.dilation;
        const float* from = in + iy * c.y.in_step + ix * c.x.in_step;
        float* to = out + oy * c.y.out_step + columns.first * c.x.out_step;
        add_row(from, step, to, c.x.out_step, columns.last - columns.first, w);
    }
}

template <typename Visit>
void for_each_element(const Convolution& c, float* plane, Visit&& visit) {
    for (std::int64_t y = 0; y < c.y.out; ++y)
        for (std::int64_t x = 0; x < c.x.out; ++x) visit(plane[y * c.y.out_step + x * c.x.out_step]);
}

// Weights are [out, in/g, …].
void convolve_channel(const Convolution& c, const float* in, float* out, std::int64_t channel) {
    for_each_element(c, out, [](float& e) { e = 0; });
    const float* kernel = c.weight + channel * c.weight_out;
    for (std::int64_t i = 0; i < c.group_in; ++i, in += c.in_channel, kernel += c.weight_in)
        for (std::int64_t ky = 0; ky < c.y.kernel; ++ky)
            for (std::int64_t kx = 0; kx < c.x.kernel; ++kx)
                add_plane(c, in, out, kernel[ky * c.y.kernel_step + kx * c.x.kernel_step], ky, kx);
    if (c.bias != nullptr) for_each_element(c, out, [&](float& e) { e += c.bias[channel]; });
}

// Transposed: each input element spreads over the outputs i·stride - padding + k·dilation. Weights are [in, out/g, …];
// `kernel` is that of the group's first input channel.
void spread_channel(const Convolution& c, const float* in, const float* kernel, float* out, std::int64_t channel) {
    for_each_element(c, out, [&](float& e) { e = c.bias == nullptr ? 0.0F : c.bias[channel]; });
    for (std::int64_t iy = 0; iy < c.y.in; ++iy)
        for (std::int64_t ix = 0; ix < c.x.in; ++ix)
            for (std::int64_t i = 0; i < c.group_in; ++i) {
                const float value = in[i * c.in_channel + iy * c.y.in_step + ix * c.x.in_step];
                const float* const w = kernel + i * c.weight_in;
                for (std::int64_t ky = 0; ky < c.y.kernel; ++ky) {
                    const std::int64_t oy = iy * c.y.stride - c.y.padding + ky * c.y.dilation;
                    if (oy < 0 || oy >= c.y.out) continue;
                    for (std::int64_t kx = 0; kx < c.x.kernel; ++kx) {
                        const std::int64_t ox = ix * c.x.stride - c.x.padding + kx * c.x.dilation;
                        if (ox < 0 || ox >= c.x.out) continue;
                        out[oy * c.y.out_step + ox * c.x.out_step] +=
                            value * w[ky * c.y.kernel_step + kx * c.x.kernel_step];
                    }
                }
            }
}

void convolve(const Convolution& c) {
    for (std::int64_t n = 0; n < c.batches; ++n)
        for (std::int64_t g = 0; g < c.groups; ++g)
            for (std::int64_t o = 0; o < c.group_out; ++o) {
                const std::int64_t channel = g * c.group_out + o;
                const float* const in = c.input + n * c.in_batch + g * c.group_in * c.in_channel;
                float* const out = c.out + n * c.out_batch + channel * c.out_channel;
                if (c.transposed)
                    spread_channel(c, in, c.weight + g * c.group_in * c.weight_in + o * c.weight_out, out, channel);
                else
                    convolve_channel(c, in, out, channel);
            }
}

// Sizes of the output; negative when the kernel does not fit.
std::int64_t output_size(const Axis& a, bool transposed) {
    const std::int64_t reach = a.dilation * (a.kernel - 1) + 1;
    if (transposed) return (a.in - 1) * a.stride - 2 * a.padding + reach + a.output_padding;
    const std::int64_t room = a.in + 2 * a.padding - reach;
    return room < 0 ? -1 : room / a.stride + 1;
}

Result<void> read_axes(const Arguments& args, Convolution& c, bool is_1d) {
    constexpr Pair kNoPadding{0, 0};
    TRY_ASSIGN(const Pair stride, pair(args, 3, 1));
    TRY_ASSIGN(const Pair padding, pair(args, 4, 0));
    TRY_ASSIGN(const Pair dilation, pair(args, 5, 1));
    TRY_ASSIGN(const Pair output_padding, pair(args, 7, 0, &kNoPadding));
    c.x.stride = stride.x, c.x.padding = padding.x, c.x.dilation = dilation.x, c.x.output_padding = output_padding.x;
    if (!is_1d)
        c.y.stride = stride.y, c.y.padding = padding.y, c.y.dilation = dilation.y,
        c.y.output_padding = output_padding.y;
    return {};
}

Strides element_strides(const Tensor& t) {
    return t.strides();
}

}  // namespace

// input, weight, bias?, stride, padding, dilation, transposed, output_padding, groups, out
Result<void> run_convolution(Arguments& args) {
    TRY_ASSIGN(const Tensor* const input, float_tensor(args, 0));
    TRY_ASSIGN(const Tensor* const weight, float_tensor(args, 1));
    if ((input->rank != 3 && input->rank != 4) || weight->rank != input->rank)
        return args.error(ErrorCode::NotSupported, "{}: needs 3 or 4 dimensions in input and weight, has {} and {}",
                          static_cast<unsigned>(input->rank), static_cast<unsigned>(weight->rank));
    Convolution c;
    TRY_ASSIGN(c.transposed, args.boolean(6));
    TRY_ASSIGN(c.groups, args.integer(8));
    const bool is_1d = input->rank == 3;
    TRY(read_axes(args, c, is_1d));

    const std::size_t last = input->rank - 1U;
    const Strides in = element_strides(*input), kernel = element_strides(*weight);
    c.x.in = input->sizes[last], c.x.in_step = in[last], c.x.kernel = weight->sizes[last],
    c.x.kernel_step = kernel[last];
    if (!is_1d)
        c.y.in = input->sizes[2], c.y.in_step = in[2], c.y.kernel = weight->sizes[2], c.y.kernel_step = kernel[2];
    const std::int64_t channels = input->sizes[1];
    if (c.groups < 1 || channels < 1 || channels % c.groups != 0 || weight->sizes[0] % c.groups != 0 ||
        (c.transposed ? weight->sizes[0] != channels : weight->sizes[1] != channels / c.groups))
        return args.error(ErrorCode::InvalidArgument, "{}: {} channels and a weight of {} x {} do not make {} groups",
                          channels, weight->sizes[0], weight->sizes[1], c.groups);
    c.group_in = channels / c.groups;
    c.group_out = c.transposed ? weight->sizes[1] : weight->sizes[0] / c.groups;
    c.weight_out = c.transposed ? kernel[1] : kernel[0];
    c.weight_in = c.transposed ? kernel[0] : kernel[1];
    c.y.out = output_size(c.y, c.transposed);
    c.x.out = output_size(c.x, c.transposed);
    if (c.y.out < 1 || c.x.out < 1 || c.y.kernel < 1 || c.x.kernel < 1)
        return args.error(ErrorCode::InvalidArgument, "{}: a kernel of {} x {} does not fit an input of {} x {}",
                          c.y.kernel, c.x.kernel, c.y.in, c.x.in);
    IntList sizes;
    sizes.count = input->rank;
    sizes.items[0] = input->sizes[0];
    sizes.items[1] = c.group_out * c.groups;
    if (!is_1d) sizes.items[2] = c.y.out;
    sizes.items[last] = c.x.out;
    TRY_ASSIGN(const Shape shape, shape_of(args, 0, sizes));
    if (!args.is_null(2)) {
        TRY_ASSIGN(const Tensor* const bias, float_tensor(args, 2));
        if (bias->rank != 1 || bias->sizes[0] != shape.sizes[1])
            return args.error(ErrorCode::InvalidArgument, "{}: argument 2 must be one bias for each of {} channels",
                              shape.sizes[1]);
        c.bias = bias->as<float>();
    }
    TRY_ASSIGN(Tensor* const out, out_of_shape(args, 9, shape));
    TRY(want_type(args, 9, *out, ScalarType::Float32));
    const Strides to = element_strides(*out);
    c.x.out_step = to[last];
    if (!is_1d) c.y.out_step = to[2];
    c.input = input->as<float>(), c.weight = weight->as<float>(), c.out = out->as<float>();
    c.batches = input->sizes[0];
    c.in_batch = in[0], c.in_channel = in[1], c.out_batch = to[0], c.out_channel = to[1];
    if (out->numel() != 0 && input->numel() == 0)
        return args.error(ErrorCode::InvalidArgument, "{}: argument 0 is empty");
    if (out->numel() != 0) convolve(c);
    return {};
}

}  // namespace talpa::runtime::operators
