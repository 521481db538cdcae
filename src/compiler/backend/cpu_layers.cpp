// Convolutions, pools and resizing, which run channels first, and matrix products. (pte-format, section 6)
#include <algorithm>

#include "compiler/backend/cpu_call.h"

namespace talpa::compiler {
namespace {

using Obstacle = std::optional<std::string>;

std::vector<std::int64_t> list_of(const Pair& p) {
    return {p[0], p[1]};
}

bool is_symmetric(const Edges& e) {
    return e.top == e.bottom && e.left == e.right;
}

Obstacle convolution_obstacle(const Graph&, const Node& node) {
    if (!is_symmetric(node.as<ConvAttr>().padding)) return "its padding differs between opposite sides";
    return std::nullopt;
}

// ExecuTorch's pools allow a border of half their window.
Obstacle max_pool_obstacle(const Graph&, const Node& node) {
    const auto& a = node.as<PoolAttr>();
    if (!is_symmetric(a.padding)) return "its padding differs between opposite sides";
    if (a.padding.top > a.kernel[0] / 2 || a.padding.left > a.kernel[1] / 2)
        return "it is padded by more than half of its window";
    return std::nullopt;
}

Obstacle average_pool_obstacle(const Graph& graph, const Node& node) {
    if (node.as<PoolAttr>().dilation != Pair{1, 1}) return "its window is dilated";
    return max_pool_obstacle(graph, node);
}

// Where ExecuTorch's two functions see a pixel's value: nearest at its corner, bilinear in its middle.
Obstacle cpu_resize_obstacle(const Graph&, const Node& node) {
    const auto& a = node.as<ResizeAttr>();
    if (a.mode == ResizeAttr::Mode::Nearest)
        return a.align_corners || a.half_pixel
                   ? Obstacle("it takes the nearest pixel by aligned corners or half pixels")
                   : std::nullopt;
    if (!a.align_corners && !a.half_pixel) return "it interpolates between the corners of pixels";
    return std::nullopt;
}

bool same_batches(const Shape& a, const Shape& b) {
    return a.size() == b.size() && std::equal(a.begin(), a.end() - 2, b.begin());
}

Obstacle matmul_obstacle(const Graph& graph, const Node& node) {
    if (!same_batches(graph[node.inputs[0]].shape, graph[node.inputs[1]].shape))
        return "its operands have different batches";
    return std::nullopt;
}

std::int32_t call_view(CpuCall& c, std::int32_t from, const Shape& shape) {
    const std::int32_t t = c.temporary(shape);
    c.p.call("aten::view_copy.out", {from, c.p.integers(shape), t, t});
    return t;
}

std::int32_t call_reordered(CpuCall& c, std::int32_t from, const Shape& of, const std::vector<std::int64_t>& order) {
    Shape shape;
    for (const std::int64_t d : order) shape.push_back(of[static_cast<std::size_t>(d)]);
    const std::int32_t t = c.temporary(shape);
    c.p.call("aten::permute_copy.out", {from, c.p.integers(order), t, t});
    return t;
}

/// O x KH x KW x I to O x I x KH x KW; transposed operators want the input channels of all groups first, and the output
/// channels of one.
std::int32_t call_weight(CpuCall& c, bool transposed) {
    const Shape& w = c.value(1).shape;
    const std::int32_t weight = c.operand(1);
    if (!transposed) return call_reordered(c, weight, w, {0, 3, 1, 2});
    const std::int64_t groups = c.as<ConvAttr>().groups;
    const Shape apart{groups, w[0] / groups, w[1], w[2], w[3]}, together{groups * w[3], w[0] / groups, w[1], w[2]};
    const std::int32_t turned = call_reordered(c, call_view(c, weight, apart), apart, {0, 4, 1, 2, 3});
    return call_view(c, turned, together);
}

void call_convolution(CpuCall& c, const char*) {
    const auto& a = c.as<ConvAttr>();
    const bool transposed = c.node().op == Op::ConvTranspose2d;
    c.spatial(a.clamp, [&](std::int32_t in, std::int32_t to) {
        const std::int32_t weight = call_weight(c, transposed);
        c.p.call("aten::convolution.out",
                 {in, weight, c.optional_operand(2), c.p.integers(list_of(a.stride)),
                  c.p.integers({a.padding.top, a.padding.left}), c.p.integers(list_of(a.dilation)),
                  c.p.boolean(transposed), c.p.integers(list_of(a.output_padding)), c.p.number(a.groups), to, to});
    });
}

void call_max_pool(CpuCall& c, const char*) {
    const auto& a = c.as<PoolAttr>();
    c.spatial(a.clamp, [&](std::int32_t in, std::int32_t to) {
        const std::int32_t indices = c.p.tensor(DType::Int64, channels_first(c.result().shape));
        c.p.call("aten::max_pool2d_with_indices.out",
                 {in, c.p.integers(list_of(a.kernel)), c.p.integers(list_of(a.stride)),
                  c.p.integers({a.padding.top, a.padding.left}), c.p.integers(list_of(a.dilation)), c.p.boolean(false),
                  to, indices, c.p.tensors({to, indices})});
    });
}

void call_average_pool(CpuCall& c, const char*) {
    const auto& a = c.as<PoolAttr>();
    c.spatial(a.clamp, [&](std::int32_t in, std::int32_t to) {
        c.p.call("aten::avg_pool2d.out",
                 {in, c.p.integers(list_of(a.kernel)), c.p.integers(list_of(a.stride)),
                  c.p.integers({a.padding.top, a.padding.left}), c.p.boolean(false), c.p.boolean(a.count_include_pad),
                  a.divisor != 0 ? c.p.number(a.divisor) : c.p.null(), to, to});
    });
}

void call_resize(CpuCall& c, const char*) {
    const auto& a = c.as<ResizeAttr>();
    c.spatial({}, [&](std::int32_t in, std::int32_t to) {
        const Shape& s = c.result().shape;
        const std::int32_t size = c.p.integers({s[1], s[2]});
        if (a.mode == ResizeAttr::Mode::Bilinear)
            c.p.call("aten::upsample_bilinear2d.vec_out", {in, size, c.p.boolean(a.align_corners), c.p.null(), to, to});
        else
            c.p.call("aten::upsample_nearest2d.vec_out", {in, size, c.p.null(), to, to});
    });
}

void call_fully_connected(CpuCall& c, const char*) {
    const std::int32_t x = c.operand(0), w = c.operand(1), b = c.optional_operand(2);
    c.clamped(c.as<FullyConnectedAttr>().clamp,
              [&](std::int32_t to) { c.p.call("aten::linear.out", {x, w, b, to, to}); });
}

/// The same matrices in one row of batches.
Shape flat_batches(const Shape& s) {
    std::int64_t count = 1;
    for (std::size_t d = 0; d + 2 < s.size(); ++d) count *= s[d];
    return {count, s[s.size() - 2], s.back()};
}

void call_matmul(CpuCall& c, const char*) {
    const Shape &a = c.value(0).shape, &b = c.value(1).shape, &o = c.result().shape;
    const std::int32_t x = c.operand(0), y = c.operand(1), to = c.out();
    if (a.size() == 2) {
        c.p.call("aten::mm.out", {x, y, to, to});
    } else if (a.size() == 3) {
        c.p.call("aten::bmm.out", {x, y, to, to});
    } else {
        const std::int32_t left = call_view(c, x, flat_batches(a)), right = call_view(c, y, flat_batches(b)),
                           made = c.temporary(flat_batches(o));
        c.p.call("aten::bmm.out", {left, right, made, made});
        c.p.call("aten::view_copy.out", {made, c.p.integers(o), to, to});
    }
    c.finish();
}

constexpr CpuOperator kLayers[] = {
    {.op = Op::Conv2d, .call = call_convolution, .obstacle = convolution_obstacle},
    {.op = Op::ConvTranspose2d, .call = call_convolution, .obstacle = convolution_obstacle},
    {.op = Op::MaxPool2d, .call = call_max_pool, .obstacle = max_pool_obstacle},
    {.op = Op::AvgPool2d, .call = call_average_pool, .obstacle = average_pool_obstacle},
    {.op = Op::Resize, .call = call_resize, .obstacle = cpu_resize_obstacle},
    {.op = Op::FullyConnected, .call = call_fully_connected},
    {.op = Op::MatMul, .call = call_matmul, .obstacle = matmul_obstacle},
};

}  // namespace

std::span<const CpuOperator> cpu_layer_operators() {
    return kLayers;
}

}  // namespace talpa::compiler
