#include "compiler/lower/lowerer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace talpa::compiler {

npu::ElementType element_type(DType type) {
    switch (type) {
        case DType::UInt8:
            return {1, false};
        case DType::Int16:
            return {2, true};
        case DType::Int32:
            return {4, true};
        default:
            return {1, true};
    }
}

Limits limits_of(const Value& result, const Clamp& clamp) {
    const Quantization& q = *result.quantization;
    Limits l{static_cast<std::int32_t>(q.min), static_cast<std::int32_t>(q.max)};
    constexpr double kFar = 1e30;
    if (clamp.min > -kFar) l.min = std::max(l.min, static_cast<std::int32_t>(quantize(clamp.min, q)));
    if (clamp.max < kFar) l.max = std::min(l.max, static_cast<std::int32_t>(quantize(clamp.max, q)));
    l.min = std::min(l.min, l.max);
    return l;
}

void set_limits(npu::Operation& op, npu::ElementType ofm, Limits limits) {
    if (ofm.bytes == 4) limits = {-32768, 32767};  // they do not apply to 32 bits (section 5.8)
    op.activation.raw_min = static_cast<std::uint16_t>(limits.min);
    op.activation.raw_max = static_cast<std::uint16_t>(limits.max);
}

npu::Operation plain_operation(npu::OpKind kind, npu::ElementType ifm, npu::ElementType ofm) {
    npu::Operation op;
    op.kind = kind;
    op.ifm.type = op.ifm2.type = ifm;
    op.ofm.type = ofm;
    // MIN, MAX and the shifts have no scale at all (section 5.7).
    using npu::OpKind;
    op.ofm_global_scale = kind != OpKind::Min && kind != OpKind::Max && kind != OpKind::Clz && kind != OpKind::Shr &&
                          kind != OpKind::Shl && !npu::has_weights(kind);
    op.ofm_scale = {op.ofm_global_scale ? 1u : 0u, 0};
    op.opa_scale = {1, 0};
    op.opb_scale = 1;
    if (kind != OpKind::Add && kind != OpKind::Sub) {
        op.opa_scale = {0, 0};
        op.opb_scale = 0;
    }
    op.ofm_rounding = op.ifm_rounding = npu::Rounding::Natural;
    set_limits(op, ofm,
               {static_cast<std::int32_t>(ofm.bytes == 4 ? 0 : ofm.min()),
                static_cast<std::int32_t>(ofm.bytes == 4 ? 0 : ofm.max())});
    return op;
}

std::int32_t real_to_stored(float real, const Quantization& q) {
    // float32, as the framework quantizes (section 9.7).
    const float inverse = 1.0f / static_cast<float>(q.scales[0]);
    const float v = std::nearbyint(real * inverse) + static_cast<float>(q.zero_points[0]);
    return static_cast<std::int32_t>(
        std::clamp<double>(std::isnan(v) ? 0.0 : double{v}, static_cast<double>(q.min), static_cast<double>(q.max)));
}

const std::string& Lowerer::result_name() const {
    return graph_[graph_.nodes[node_].outputs[0]].name;
}

TensorId Lowerer::new_tensor(std::string name, npu::ElementType type, const Shape& shape, Tensor::Role role) {
    Tensor t;
    t.name = std::move(name);
    t.type = type;
    t.role = role;
    // The last three dimensions; what is before them counts as rows.
    const std::size_t rank = shape.size();
    if (rank >= 1) t.depth = static_cast<std::uint32_t>(shape[rank - 1]);
    if (rank >= 2) t.width = static_cast<std::uint32_t>(shape[rank - 2]);
    for (std::size_t i = 0; i + 2 < rank; ++i) t.height *= static_cast<std::uint32_t>(shape[i]);
    network_.tensors.push_back(std::move(t));
    return static_cast<TensorId>(network_.tensors.size() - 1);
}

TensorId Lowerer::constant_tensor(const std::string& name, npu::ElementType type, const Shape& shape,
                                  std::vector<std::uint8_t> data) {
    const TensorId id = new_tensor(name, type, shape, Tensor::Role::Constant);
    network_.tensors[id].data = std::move(data);
    return id;
}

Place Lowerer::place(ValueId id) {
    if (const auto found = places_.find(id); found != places_.end()) return found->second;
    const Value& v = graph_[id];
    const Place p = dense_place(constant_tensor(v.name, element_type(v.stored_type()), v.shape, *v.constant), v.shape);
    places_[id] = p;
    return p;
}

Place Lowerer::contiguous(ValueId id, bool dense) {
    const Place p = place(id);
    const Value& v = graph_[id];
    if (dense ? is_dense(p, v.shape) : (v.shape.empty() || v.shape.back() == 1 || p.strides.back() == 1)) return p;
    auto& cache = dense ? dense_ : contiguous_;
    if (const auto found = cache.find(id); found != cache.end()) return found->second;
    const npu::ElementType type = element_type(v.stored_type());
    const Place q = dense_place(new_tensor(v.name + "/dense", type, v.shape), v.shape);
    constexpr std::int64_t kFewChannels = 4;
    if (v.shape.size() == 4 && v.shape[3] <= kFewChannels) {
        // Plane by plane: then both sides go row by row, and stripes of the image can.
        Shape plane = v.shape;
        plane[3] = 1;
        for (std::int64_t c = 0; c < v.shape[3]; ++c) {
            Place from = p, to = q;
            from.offset += c * p.strides[3];
            to.offset += c * q.strides[3];
            [[maybe_unused]] const auto done = copy(plane, type, from, to);
        }
    } else {
        [[maybe_unused]] const auto done = copy(v.shape, type, p, q);
    }
    dense_[id] = contiguous_[id] = q;
    return q;
}

Place Lowerer::home(ValueId id) {
    if (const auto found = homes_.find(id); found != homes_.end()) {
        places_[id] = found->second;
        return found->second;
    }
    const Value& v = graph_[id];
    const Place p = dense_place(new_tensor(v.name, element_type(v.stored_type()), v.shape), v.shape);
    places_[id] = p;
    return p;
}

Place Lowerer::home_as(ValueId id, const Shape& shape) {
    const Place to = home(id);
    const Value& v = graph_[id];
    const auto seen = reshape(to, v.shape, shape);
    if (seen && (shape.empty() || shape.back() == 1 || seen->strides.back() == 1)) return *seen;
    const TensorId t = new_tensor(v.name + "/apart", element_type(v.stored_type()), v.shape);
    pending_.push_back({id, dense_place(t, v.shape)});
    return dense_place(t, shape);
}

host::Result<void> Lowerer::copy_home() {
    for (const Pending& p : pending_) {
        const Value& v = graph_[p.value];
        TRY(copy(v.shape, element_type(v.stored_type()), p.from, places_[p.value]));
    }
    pending_.clear();
    return {};
}

void Lowerer::alias(ValueId id, const Place& p) {
    const auto found = homes_.find(id);
    if (found == homes_.end()) {
        places_[id] = p;
        return;
    }
    places_[id] = found->second;
    const Place& h = found->second;
    if (h.tensor == p.tensor && h.offset == p.offset && h.strides == p.strides) return;
    const Value& v = graph_[id];
    [[maybe_unused]] const auto done = copy(v.shape, element_type(v.stored_type()), p, h);
}

void Lowerer::add_step(Step step) {
    step.node = node_;
    if (!npu::is_elementwise(step.op.kind)) {
        // What a stride leaves unread at the far end is no padding: the hardware would take it off the rows that are.
        const npu::Kernel& k = step.op.kernel;
        const bool was_padded = step.op.padding.any();
        const std::int64_t factor = step.op.upscale == npu::Upscale::None ? 1 : 2;
        const auto beyond = [&](std::uint32_t ofm, std::uint32_t stride, std::uint32_t kernel, std::uint32_t before,
                                std::uint32_t ifm) {
            const std::int64_t end = (std::int64_t{ofm} - 1) * stride + kernel - before;
            return static_cast<std::uint32_t>(std::max<std::int64_t>(0, end - std::int64_t{ifm} * factor));
        };
        step.op.padding.bottom =
            beyond(step.ofm.height, k.stride_y, k.dilated_height(), step.op.padding.top, step.ifm.height);
        step.op.padding.right =
            beyond(step.ofm.width, k.stride_x, k.dilated_width(), step.op.padding.left, step.ifm.width);
        // An average that would divide by what its windows hold, but all are full: it needs the number (section 5.5).
        if (step.op.kind == npu::OpKind::AvgPool && was_padded && !step.op.padding.any())
            step.op.ofm_scale = average_scale(k.height * k.width);
    }
    network_.steps.push_back(std::move(step));
}

Operand Lowerer::operand(ValueId id, const Shape& shape) {
    const Value& v = graph_[id];
    Operand o;
    o.type = element_type(v.stored_type());
    o.zero_point = v.quantization ? v.quantization->zero_points[0] : 0;
    if (v.is_constant() && element_count(v.shape) == 1) {
        o.is_scalar = true;
        std::int32_t n = 0;
        std::memcpy(&n, v.constant->data(), std::min<std::size_t>(4, v.constant->size()));
        o.scalar = o.type.bytes == 1   ? (o.type.is_signed ? static_cast<std::int8_t>(n) : static_cast<std::uint8_t>(n))
                   : o.type.bytes == 2 ? static_cast<std::int16_t>(n)
                                       : n;
    } else {
        o.place = broadcast(place(id), v.shape, shape);
    }
    return o;
}

// Homes: the network's outputs first, then, from the last node to the first, memory that a reader would otherwise copy
// into: a concatenation's parts, a padding's inside, what is only reshaped on its way to an output.
void Lowerer::choose_homes(std::span<const std::uint32_t> nodes, std::span<const ValueId> outputs) {
    std::map<ValueId, bool> inside;
    for (const std::uint32_t n : nodes)
        for (const ValueId v : graph_.nodes[n].outputs) inside[v] = true;
    const auto free_to_place = [&](ValueId id) { return inside.contains(id) && !homes_.contains(id); };
    for (const ValueId id : outputs) {
        const Value& v = graph_[id];
        const TensorId t = new_tensor(v.name, element_type(v.stored_type()), v.shape, Tensor::Role::Output);
        network_.outputs.push_back(t);
        if (free_to_place(id)) homes_[id] = dense_place(t, v.shape);
    }
    for (std::size_t i = nodes.size(); i-- > 0;) {
        const Node& node = graph_.nodes[nodes[i]];
        const Value& out = graph_[node.outputs[0]];
        const ValueId first = node.inputs.empty() ? kNoValue : node.inputs[0];
        if (node.op == Op::Concat) {
            const auto axis = static_cast<std::size_t>(node.as<AxisAttr>().axis);
            const Place whole =
                homes_.contains(node.outputs[0])
                    ? homes_[node.outputs[0]]
                    : dense_place(new_tensor(out.name, element_type(out.stored_type()), out.shape), out.shape);
            homes_[node.outputs[0]] = whole;
            Place part = whole;
            for (const ValueId in : node.inputs) {
                if (free_to_place(in) && graph_[in].quantization == out.quantization &&
                    std::count(node.inputs.begin(), node.inputs.end(), in) == 1)
                    homes_[in] = part;
                part.offset += graph_[in].shape[axis] * whole.strides[axis];
            }
        } else if (node.op == Op::Reshape && homes_.contains(node.outputs[0]) && free_to_place(first)) {
            if (const auto p = reshape(homes_[node.outputs[0]], out.shape, graph_[first].shape)) homes_[first] = *p;
        } else if (node.op == Op::Pad && free_to_place(first)) {
            const auto& pad = node.as<PadAttr>();
            const Place whole =
                homes_.contains(node.outputs[0])
                    ? homes_[node.outputs[0]]
                    : dense_place(new_tensor(out.name, element_type(out.stored_type()), out.shape), out.shape);
            homes_[node.outputs[0]] = whole;
            if (graph_[first].quantization != out.quantization) continue;
            Place part = whole;
            for (std::size_t d = 0; d < pad.before.size(); ++d) part.offset += pad.before[d] * whole.strides[d];
            homes_[first] = part;
        }
    }
}

}  // namespace talpa::compiler
