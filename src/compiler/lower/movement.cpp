// Operators that only move elements: what can be another place of the same memory is that, the rest is copied.
// (ethos-u65, sections 4.1 and 9.5)
#include <fmt/format.h>

#include <algorithm>

#include "compiler/lower/lowerer.h"

namespace talpa::compiler {
namespace {

bool same_place(const Place& a, const Place& b) {
    return a.tensor == b.tensor && a.offset == b.offset && a.strides == b.strides;
}

bool same_grid(const Value& a, const Value& b) {
    return a.quantization->scales == b.quantization->scales &&
           a.quantization->zero_points == b.quantization->zero_points && a.stored_type() == b.stored_type();
}

// A stored number over all of a place.
host::Result<void> fill(Lowerer& l, const Shape& shape, npu::ElementType type, const Place& to, std::int32_t number) {
    if (element_count(shape) == 0) return {};
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(std::max<std::int64_t>(1, shape.back())) * type.bytes);
    for (std::size_t i = 0; i < bytes.size(); i += type.bytes)
        for (std::size_t b = 0; b < type.bytes; ++b) bytes[i + b] = static_cast<std::uint8_t>(number >> (8 * b));
    Place from{l.constant_tensor("fill", type, {std::max<std::int64_t>(1, shape.back())}, std::move(bytes)), 0,
               std::vector<std::int64_t>(shape.size(), 0)};
    from.strides.back() = 1;
    return l.copy(shape, type, from, to);
}

}  // namespace

std::optional<std::string> movement_obstacle(const Graph& graph, const Node& node) {
    const Value& out = graph[node.outputs[0]];
    if (node.op == Op::Concat) {
        for (const ValueId id : node.inputs)
            if (dtype_size(graph[id].stored_type()) != dtype_size(out.stored_type()))
                return "its inputs have types of different sizes";
        return std::nullopt;
    }
    if (!same_grid(graph[node.inputs[0]], out)) return "its input and output have different scales";
    return std::nullopt;
}

host::Result<void> lower_concat(Lowerer& l, const Node& node) {
    const Graph& graph = l.graph();
    const Value& out = graph[node.outputs[0]];
    const auto axis = static_cast<std::size_t>(node.as<AxisAttr>().axis);
    const npu::ElementType type = element_type(out.stored_type());
    Place part = l.home(node.outputs[0]);
    for (const ValueId id : node.inputs) {
        const Value& v = graph[id];
        const Place from = l.place(id);
        if (!same_place(from, part) && element_count(v.shape) != 0) {
            if (same_grid(v, out))
                TRY(l.copy(v.shape, type, from, part));
            else
                TRY(l.rescale(v.shape, l.operand(id, v.shape), part, type, out.quantization->zero_points[0],
                              l.scale(v.quantization->scales[0] / out.quantization->scales[0]), limits_of(out, {})));
        }
        part.offset += v.shape[axis] * part.strides[axis];
    }
    return {};
}

host::Result<void> lower_slice(Lowerer& l, const Node& node) {
    const auto& attr = node.as<SliceAttr>();
    Place p = l.place(node.inputs[0]);
    for (std::size_t d = 0; d < attr.starts.size(); ++d) {
        p.offset += attr.starts[d] * p.strides[d];
        p.strides[d] *= attr.steps[d];
    }
    l.alias(node.outputs[0], p);
    return {};
}

host::Result<void> lower_reshape(Lowerer& l, const Node& node) {
    const Graph& graph = l.graph();
    const Value &in = graph[node.inputs[0]], &out = graph[node.outputs[0]];
    if (const auto p = reshape(l.place(node.inputs[0]), in.shape, out.shape)) {
        l.alias(node.outputs[0], *p);
        return {};
    }
    l.alias(node.outputs[0], *reshape(l.contiguous(node.inputs[0], true), in.shape, out.shape));
    return {};
}

host::Result<void> lower_permute(Lowerer& l, const Node& node) {
    l.alias(node.outputs[0], permute(l.place(node.inputs[0]), node.as<PermuteAttr>().order));
    return {};
}

host::Result<void> lower_expand(Lowerer& l, const Node& node) {
    const Graph& graph = l.graph();
    l.alias(node.outputs[0],
            broadcast(l.place(node.inputs[0]), graph[node.inputs[0]].shape, graph[node.outputs[0]].shape));
    return {};
}

std::optional<std::string> pad_obstacle(const Graph& graph, const Node& node) {
    const auto& attr = node.as<PadAttr>();
    const Value& out = graph[node.outputs[0]];
    if (!same_grid(graph[node.inputs[0]], out)) return "its input and output have different scales";
    if (attr.mode == PadAttr::Mode::Constant) {
        if (element_count(out.shape) == 0) return "its result is empty";
        return std::nullopt;
    }
    // Each row of the border is a copy.
    constexpr std::int64_t kMostCopies = 4096;
    std::int64_t copies = 0;
    for (std::size_t d = 0; d < attr.before.size(); ++d) copies += attr.before[d] + attr.after[d];
    if (copies > kMostCopies) return fmt::format("it repeats {} rows, at most {} are made", copies, kMostCopies);
    return std::nullopt;
}

host::Result<void> pad_around(Lowerer& l, const PadAttr& attr, const Shape& inner, npu::ElementType type,
                              const Place& whole, std::int32_t number) {
    // Dimension by dimension: what lies before and after, over the full extent of the dimensions already done.
    Shape extent = inner;
    Place origin = whole;
    for (std::size_t d = 0; d < inner.size(); ++d) origin.offset += attr.before[d] * whole.strides[d];
    for (std::size_t d = inner.size(); d-- > 0;) {
        const auto strip = [&](std::int64_t at, std::int64_t count) {
            Shape shape = extent;
            shape[d] = count;
            Place p = origin;
            p.offset += at * whole.strides[d];
            return std::pair{shape, p};
        };
        if (attr.mode == PadAttr::Mode::Constant) {
            if (attr.before[d] > 0) {
                const auto [shape, p] = strip(-attr.before[d], attr.before[d]);
                TRY(fill(l, shape, type, p, number));
            }
            if (attr.after[d] > 0) {
                const auto [shape, p] = strip(extent[d], attr.after[d]);
                TRY(fill(l, shape, type, p, number));
            }
        } else {
            const std::int64_t size = extent[d];
            for (std::int64_t i = 1; i <= std::max(attr.before[d], attr.after[d]); ++i) {
                using Mode = PadAttr::Mode;
                const std::int64_t near = attr.mode == Mode::Replicate ? 0 : attr.mode == Mode::Symmetric ? i - 1 : i;
                const std::int64_t far = size - 1 - near;
                if (i <= attr.before[d]) {
                    const auto [shape, p] = strip(-i, 1);
                    TRY(l.copy(shape, type, strip(near, 1).second, p));
                }
                if (i <= attr.after[d]) {
                    const auto [shape, p] = strip(size - 1 + i, 1);
                    TRY(l.copy(shape, type, strip(far, 1).second, p));
                }
            }
        }
        origin.offset -= attr.before[d] * whole.strides[d];
        extent[d] += attr.before[d] + attr.after[d];
    }
    return {};
}

host::Result<void> lower_pad(Lowerer& l, const Node& node) {
    const Graph& graph = l.graph();
    const auto& attr = node.as<PadAttr>();
    const Value &in = graph[node.inputs[0]], &out = graph[node.outputs[0]];
    const npu::ElementType type = element_type(out.stored_type());
    const Place whole = l.home(node.outputs[0]);
    Place inside = whole;
    for (std::size_t d = 0; d < in.shape.size(); ++d) inside.offset += attr.before[d] * whole.strides[d];
    const Place from = l.place(node.inputs[0]);
    if (!same_place(from, inside)) TRY(l.copy(in.shape, type, from, inside));
    return pad_around(l, attr, in.shape, type, whole,
                      static_cast<std::int32_t>(quantize(attr.value, *out.quantization)));
}

std::optional<std::string> resize_obstacle(const Graph& graph, const Node& node) {
    const auto& attr = node.as<ResizeAttr>();
    const Value &in = graph[node.inputs[0]], &out = graph[node.outputs[0]];
    if (!same_grid(in, out)) return "its input and output have different scales";
    if (attr.mode != ResizeAttr::Mode::Nearest) return bilinear_obstacle(graph, node);
    for (const std::size_t d : {1u, 2u})
        if (in.shape[d] == 0 || out.shape[d] % in.shape[d] != 0)
            return fmt::format("it resizes {} to {}, no whole multiple", in.shape[d], out.shape[d]);
    if (attr.align_corners && (out.shape[1] != in.shape[1] || out.shape[2] != in.shape[2]))
        return "it aligns the corners";
    constexpr std::int64_t kMostFactor = 16;
    if (out.shape[1] / in.shape[1] > kMostFactor || out.shape[2] / in.shape[2] > kMostFactor)
        return fmt::format("it enlarges by more than {}", kMostFactor);
    return std::nullopt;
}

host::Result<void> lower_resize(Lowerer& l, const Node& node) {
    const Graph& graph = l.graph();
    const Value &in = graph[node.inputs[0]], &out = graph[node.outputs[0]];
    const npu::ElementType type = element_type(in.stored_type());
    if (node.as<ResizeAttr>().mode == ResizeAttr::Mode::Bilinear) return lower_bilinear(l, node);
    const std::int64_t fy = out.shape[1] / in.shape[1], fx = out.shape[2] / in.shape[2];
    const Place from = l.contiguous(node.inputs[0]), to = l.home_as(node.outputs[0], out.shape);
    if (fy == 2 && fx == 2) {
        // The hardware repeats rows and columns as it reads them.
        for (std::int64_t n = 0; n < in.shape[0]; ++n) {
            Step step;
            step.op = plain_operation(npu::OpKind::AvgPool, type, type);
            step.op.upscale = npu::Upscale::Nearest;
            step.op.ofm_scale = {1, 0};
            step.ifm = *image_view(from, in.shape, n, 0);
            const auto ofm = image_view(to, out.shape, n, 0);
            if (!ofm) return host::failure(ErrorCode::Internal, "{}: its channels do not lie side by side", out.name);
            step.ofm = *ofm;
            l.add_step(std::move(step));
        }
        return {};
    }
    for (std::int64_t y = 0; y < fy; ++y)
        for (std::int64_t x = 0; x < fx; ++x) {
            Place p = to;
            p.offset += y * to.strides[1] + x * to.strides[2];
            p.strides[1] *= fy;
            p.strides[2] *= fx;
            TRY(l.copy(in.shape, type, from, p));
        }
    return {};
}

}  // namespace talpa::compiler
