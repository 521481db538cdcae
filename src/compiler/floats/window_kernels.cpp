// Convolutions, matrix products, pools and resizing: float kernels over N x H x W x C.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "compiler/floats/hot_kernels.h"
#include "compiler/floats/kernel.h"

namespace talpa::compiler {

namespace {

bool is_depthwise(const Shape& weight, const ConvAttr& conv) {
    return conv.groups > 1 && weight[3] == 1 && weight[0] == conv.groups;
}

/// A row of zeros where a node has no bias.
std::vector<float> bias_of(const KernelCall& call, std::size_t input, std::int64_t count) {
    if (call.has(input)) return {call.inputs[input].begin(), call.inputs[input].end()};
    return std::vector<float>(static_cast<std::size_t>(count), 0.0f);
}

/// Windows of `rows` output positions from `first`, one after another, K floats each; zeros outside the input.
void gather_windows(const float* image, const Shape& in, const Shape& weight, const ConvAttr& conv, std::int64_t group,
                    std::int64_t out_w, std::int64_t first, std::int64_t rows, float* to) {
    const std::int64_t depth = weight[3];
    for (std::int64_t r = 0; r < rows; ++r) {
        const std::int64_t y0 = (first + r) / out_w * conv.stride[0] - conv.padding.top;
        const std::int64_t x0 = (first + r) % out_w * conv.stride[1] - conv.padding.left;
        for (std::int64_t ky = 0; ky < weight[1]; ++ky)
            for (std::int64_t kx = 0; kx < weight[2]; ++kx, to += depth) {
                const std::int64_t y = y0 + ky * conv.dilation[0], x = x0 + kx * conv.dilation[1];
                if (y < 0 || y >= in[1] || x < 0 || x >= in[2])
                    std::fill_n(to, depth, 0.0f);
                else
                    std::memcpy(to, image + (y * in[2] + x) * in[3] + group * depth,
                                static_cast<std::size_t>(depth) * sizeof(float));
            }
    }
}

void depthwise(KernelCall& call) {
    const auto& conv = call.node.as<ConvAttr>();
    const Shape &in = call.shape(0), &weight = call.shape(1), &out = call.out_shape();
    const auto bias = bias_of(call, 2, weight[0]);
    for (std::int64_t n = 0; n < out[0]; ++n)
        for (std::int64_t y = 0; y < out[1]; ++y)
            hot_kernels().depthwise({.input = call.inputs[0].data() + n * in[1] * in[2] * in[3],
                                     .weights = call.packed->data(),
                                     .bias = bias.data(),
                                     .output = call.output.data() + (n * out[1] + y) * out[2] * out[3],
                                     .height = in[1],
                                     .width = in[2],
                                     .channels = in[3],
                                     .kernel_h = weight[1],
                                     .kernel_w = weight[2],
                                     .stride_w = conv.stride[1],
                                     .dilation_h = conv.dilation[0],
                                     .dilation_w = conv.dilation[1],
                                     .first_y = y * conv.stride[0] - conv.padding.top,
                                     .first_x = -conv.padding.left,
                                     .output_width = out[2],
                                     .low = low(conv.clamp),
                                     .high = high(conv.clamp)});
}

}  // namespace

std::vector<float> pack_columns(std::span<const float> matrix, std::size_t k, std::size_t n) {
    const std::size_t panels = (n + kPanel - 1) / kPanel;
    std::vector<float> packed(panels * k * kPanel, 0.0f);
    for (std::size_t i = 0; i < k; ++i)
        for (std::size_t j = 0; j < n; ++j)
            packed[j / kPanel * kPanel * k + i * kPanel + j % kPanel] = matrix[i * n + j];
    return packed;
}

std::vector<float> pack_weights(const Graph& graph, const Node& node, std::span<const float> weights) {
    const Shape& shape = graph[node.inputs[1]].shape;
    if (node.op == Op::FullyConnected || node.op == Op::Conv2d) {
        const auto* conv = std::get_if<ConvAttr>(&node.attributes);
        const auto groups = conv != nullptr ? static_cast<std::size_t>(conv->groups) : 1;
        const auto outputs = static_cast<std::size_t>(shape[0]) / groups;
        const std::size_t k = weights.size() / static_cast<std::size_t>(shape[0]);
        if (conv != nullptr && is_depthwise(shape, *conv)) {
            std::vector<float> taps(weights.size());
            for (std::size_t c = 0; c < static_cast<std::size_t>(shape[0]); ++c)
                for (std::size_t t = 0; t < k; ++t)
                    taps[t * static_cast<std::size_t>(shape[0]) + c] = weights[c * k + t];
            return taps;
        }
        std::vector<float> all, transposed(k * outputs);
        for (std::size_t g = 0; g < groups; ++g) {
            const float* from = weights.data() + g * outputs * k;
            for (std::size_t o = 0; o < outputs; ++o)
                for (std::size_t i = 0; i < k; ++i) transposed[i * outputs + o] = from[o * k + i];
            const auto panels = pack_columns(transposed, k, outputs);
            all.insert(all.end(), panels.begin(), panels.end());
        }
        return all;
    }
    return {};
}

void conv2d(KernelCall& call) {
    const auto& conv = call.node.as<ConvAttr>();
    const Shape &in = call.shape(0), &weight = call.shape(1), &out = call.out_shape();
    if (is_depthwise(weight, conv)) return depthwise(call);
    const auto bias = bias_of(call, 2, weight[0]);
    const std::int64_t k = weight[1] * weight[2] * weight[3], outputs = weight[0] / conv.groups;
    const std::int64_t positions = out[1] * out[2];
    const bool plain = k == in[3] && conv.groups == 1 && conv.stride == Pair{1, 1} && conv.padding == Edges{};
    const std::size_t panels = static_cast<std::size_t>((outputs + 15) / 16 * 16 * k);
    constexpr std::int64_t kRows = 192;
    if (!plain) call.scratch.resize(static_cast<std::size_t>(kRows * k));
    for (std::int64_t n = 0; n < out[0]; ++n) {
        const float* image = call.inputs[0].data() + n * in[1] * in[2] * in[3];
        float* result = call.output.data() + n * positions * out[3];
        for (std::int64_t g = 0; g < conv.groups; ++g)
            for (std::int64_t first = 0; first < positions; first += kRows) {
                const std::int64_t rows = std::min(kRows, positions - first);
                const float* a = image + first * k;
                if (!plain) {
                    gather_windows(image, in, weight, conv, g, out[2], first, rows, call.scratch.data());
                    a = call.scratch.data();
                }
                hot_kernels().gemm(
                    a, static_cast<std::size_t>(k), static_cast<std::size_t>(rows), static_cast<std::size_t>(k),
                    call.packed->data() + static_cast<std::size_t>(g) * panels, static_cast<std::size_t>(outputs),
                    bias.data() + g * outputs, result + first * out[3] + g * outputs, static_cast<std::size_t>(out[3]),
                    low(conv.clamp), high(conv.clamp));
            }
    }
}

void conv_transpose2d(KernelCall& call) {
    const auto& conv = call.node.as<ConvAttr>();
    const Shape &in = call.shape(0), &weight = call.shape(1), &out = call.out_shape();
    const auto bias = bias_of(call, 2, weight[0]);
    const std::int64_t outputs = weight[0] / conv.groups, depth = weight[3];
    for (std::int64_t i = 0; i < element_count(out); ++i)
        call.output[static_cast<std::size_t>(i)] = bias[static_cast<std::size_t>(i % out[3])];
    for (std::int64_t n = 0; n < in[0]; ++n)
        for (std::int64_t y = 0; y < in[1]; ++y)
            for (std::int64_t x = 0; x < in[2]; ++x)
                for (std::int64_t ky = 0; ky < weight[1]; ++ky)
                    for (std::int64_t kx = 0; kx < weight[2]; ++kx) {
                        const std::int64_t oy = y * conv.stride[0] - conv.padding.top + ky * conv.dilation[0];
                        const std::int64_t ox = x * conv.stride[1] - conv.padding.left + kx * conv.dilation[1];
                        if (oy < 0 || oy >= out[1] || ox < 0 || ox >= out[2]) continue;
                        float* to = call.output.data() + ((n * out[1] + oy) * out[2] + ox) * out[3];
                        const float* from = call.inputs[0].data() + ((n * in[1] + y) * in[2] + x) * in[3];
                        for (std::int64_t o = 0; o < weight[0]; ++o) {
                            const float* w = call.inputs[1].data() + ((o * weight[1] + ky) * weight[2] + kx) * depth;
                            const float* f = from + o / outputs * depth;
                            float sum = 0;
                            for (std::int64_t c = 0; c < depth; ++c) sum += f[c] * w[c];
                            to[o] += sum;
                        }
                    }
    for (auto& v : call.output) v = std::clamp(v, low(conv.clamp), high(conv.clamp));
}

void fully_connected(KernelCall& call) {
    const Shape& weight = call.shape(1);
    const auto& clamp = call.node.as<FullyConnectedAttr>().clamp;
    const auto bias = bias_of(call, 2, weight[0]);
    const auto k = static_cast<std::size_t>(weight[1]), n = static_cast<std::size_t>(weight[0]);
    const std::vector<float> made =
        call.packed->empty() ? pack_weights(call.graph, call.node, call.inputs[1]) : std::vector<float>{};
    const float* panels = made.empty() ? call.packed->data() : made.data();
    hot_kernels().gemm(call.inputs[0].data(), k, call.inputs[0].size() / k, k, panels, n, bias.data(),
                       call.output.data(), n, low(clamp), high(clamp));
}

void matmul(KernelCall& call) {
    const Shape &a = call.shape(0), &b = call.shape(1), &out = call.out_shape();
    const std::size_t rank = out.size();
    const std::int64_t m = out[rank - 2], n = out[rank - 1], k = a.back();
    const Shape batch(out.begin(), out.end() - 2);
    const auto strides = [&](const Shape& s) {
        auto result = broadcast_strides(Shape(s.begin(), s.end() - 2), batch);
        for (auto& stride : result) stride *= s[s.size() - 2] * s.back();
        return result;
    };
    const auto stride_a = strides(a), stride_b = strides(b);
    std::vector<std::int64_t> from_b;
    for_each_strided(batch, stride_b, 0, [&](std::int64_t, std::int64_t offset) { from_b.push_back(offset); });
    const std::vector<float> zeros(static_cast<std::size_t>(n), 0.0f);
    for_each_strided(batch, stride_a, 0, [&](std::int64_t i, std::int64_t offset) {
        const auto panels =
            pack_columns(call.inputs[1].subspan(static_cast<std::size_t>(from_b[static_cast<std::size_t>(i)]),
                                                static_cast<std::size_t>(k * n)),
                         static_cast<std::size_t>(k), static_cast<std::size_t>(n));
        hot_kernels().gemm(call.inputs[0].data() + offset, static_cast<std::size_t>(k), static_cast<std::size_t>(m),
                           static_cast<std::size_t>(k), panels.data(), static_cast<std::size_t>(n), zeros.data(),
                           call.output.data() + i * m * n, static_cast<std::size_t>(n), -INFINITY, INFINITY);
    });
}

namespace {

/// Calls f(window) for each output position with the part of the window that lies inside the input.
struct Window {
    std::int64_t y0, y1, x0, x1;    ///< first taps and one past the last position, steps of the dilation
    std::int64_t padded_positions;  ///< positions inside input and padding
    const float* image;
    float* output;
};
template <typename F>
void for_each_window(KernelCall& call, F&& f) {
    const auto& pool = call.node.as<PoolAttr>();
    const Shape &in = call.shape(0), &out = call.out_shape();
    for (std::int64_t n = 0; n < out[0]; ++n)
        for (std::int64_t y = 0; y < out[1]; ++y)
            for (std::int64_t x = 0; x < out[2]; ++x) {
                Window w{};
                w.y0 = y * pool.stride[0] - pool.padding.top;
                w.x0 = x * pool.stride[1] - pool.padding.left;
                const std::int64_t end_y = w.y0 + (pool.kernel[0] - 1) * pool.dilation[0] + 1;
                const std::int64_t end_x = w.x0 + (pool.kernel[1] - 1) * pool.dilation[1] + 1;
                w.padded_positions = (std::min(end_y, in[1] + pool.padding.bottom) - w.y0) *
                                     (std::min(end_x, in[2] + pool.padding.right) - w.x0);
                while (w.y0 < 0) w.y0 += pool.dilation[0];
                while (w.x0 < 0) w.x0 += pool.dilation[1];
                w.y1 = std::min(end_y, in[1]);
                w.x1 = std::min(end_x, in[2]);
                w.image = call.inputs[0].data() + n * in[1] * in[2] * in[3];
                w.output = call.output.data() + ((n * out[1] + y) * out[2] + x) * out[3];
                f(w);
            }
}

}  // namespace

void max_pool2d(KernelCall& call) {
    const auto& pool = call.node.as<PoolAttr>();
    const Shape& in = call.shape(0);
    for_each_window(call, [&](const Window& w) {
        std::fill_n(w.output, in[3], -INFINITY);
        for (std::int64_t y = w.y0; y < w.y1; y += pool.dilation[0])
            for (std::int64_t x = w.x0; x < w.x1; x += pool.dilation[1]) {
                const float* from = w.image + (y * in[2] + x) * in[3];
                for (std::int64_t c = 0; c < in[3]; ++c) w.output[c] = std::max(w.output[c], from[c]);
            }
        for (std::int64_t c = 0; c < in[3]; ++c)
            w.output[c] = std::clamp(w.output[c], low(pool.clamp), high(pool.clamp));
    });
}

void avg_pool2d(KernelCall& call) {
    const auto& pool = call.node.as<PoolAttr>();
    const Shape& in = call.shape(0);
    for_each_window(call, [&](const Window& w) {
        std::fill_n(w.output, in[3], 0.0f);
        std::int64_t valid = 0;
        for (std::int64_t y = w.y0; y < w.y1; ++y)
            for (std::int64_t x = w.x0; x < w.x1; ++x, ++valid) {
                const float* from = w.image + (y * in[2] + x) * in[3];
                for (std::int64_t c = 0; c < in[3]; ++c) w.output[c] += from[c];
            }
        const std::int64_t divisor = pool.divisor != 0        ? pool.divisor
                                     : pool.count_include_pad ? w.padded_positions
                                                              : std::max<std::int64_t>(valid, 1);
        for (std::int64_t c = 0; c < in[3]; ++c)
            w.output[c] = std::clamp(w.output[c] / static_cast<float>(divisor), low(pool.clamp), high(pool.clamp));
    });
}

void resize(KernelCall& call) {
    const auto& attr = call.node.as<ResizeAttr>();
    const Shape &in = call.shape(0), &out = call.out_shape();
    const auto source = [&](std::int64_t at, std::int64_t from, std::int64_t to) {
        if (attr.align_corners)
            return to > 1 ? static_cast<float>(at) * static_cast<float>(from - 1) / static_cast<float>(to - 1) : 0.0f;
        const float scale = static_cast<float>(from) / static_cast<float>(to);
        const float half = attr.half_pixel ? 0.5f : 0.0f;
        const float position = (static_cast<float>(at) + half) * scale;
        return attr.mode == ResizeAttr::Mode::Nearest ? position : std::max(position - half, 0.0f);
    };
    for (std::int64_t n = 0; n < out[0]; ++n)
        for (std::int64_t y = 0; y < out[1]; ++y)
            for (std::int64_t x = 0; x < out[2]; ++x) {
                const float* image = call.inputs[0].data() + n * in[1] * in[2] * in[3];
                float* to = call.output.data() + ((n * out[1] + y) * out[2] + x) * out[3];
                const float fy = source(y, in[1], out[1]), fx = source(x, in[2], out[2]);
                if (attr.mode == ResizeAttr::Mode::Nearest) {
                    const auto pick = [&](float f, std::int64_t size) {
                        const auto i = static_cast<std::int64_t>(attr.align_corners ? std::round(f) : std::floor(f));
                        return std::min(i, size - 1);
                    };
                    std::copy_n(image + (pick(fy, in[1]) * in[2] + pick(fx, in[2])) * in[3], in[3], to);
                    continue;
                }
                const auto y0 = std::min(static_cast<std::int64_t>(fy), in[1] - 1);
                const auto x0 = std::min(static_cast<std::int64_t>(fx), in[2] - 1);
                const auto y1 = std::min(y0 + 1, in[1] - 1), x1 = std::min(x0 + 1, in[2] - 1);
                const float wy = fy - static_cast<float>(y0), wx = fx - static_cast<float>(x0);
                const auto at = [&](std::int64_t yy, std::int64_t xx) { return image + (yy * in[2] + xx) * in[3]; };
                const float *p00 = at(y0, x0), *p01 = at(y0, x1), *p10 = at(y1, x0), *p11 = at(y1, x1);
                for (std::int64_t c = 0; c < in[3]; ++c)
                    to[c] = (p00[c] * (1 - wx) + p01[c] * wx) * (1 - wy) + (p10[c] * (1 - wx) + p11[c] * wx) * wy;
            }
}

}  // namespace talpa::compiler
