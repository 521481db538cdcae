// Elementwise operations over N dimensions as the hardware's over three: dimensions joined where all operands allow it,
// a channel dimension of one where elements do not lie side by side, the rest unrolled. (ethos-u65, sections 4.1 and
// 4.3)
#include <algorithm>

#include "compiler/graph/npu_limits.h"
#include "compiler/lower/lowerer.h"

namespace talpa::compiler {
namespace {

struct Dimension {
    std::int64_t size = 1;
    std::array<std::int64_t, 3> stride{};  // of the result, operand a, operand b
};

bool joins(const Dimension& outer, const Dimension& inner) {
    if (outer.size * inner.size > kMostInDimension) return false;
    for (std::size_t i = 0; i < 3; ++i)
        if (outer.stride[i] != inner.stride[i] * inner.size) return false;
    return true;
}

// Inner dimensions must lie as one in the result and in both operands; a == -1 stands for "no such operand".
std::vector<Dimension> dimensions(const Shape& shape, const Place& out, const Operand& a, const Operand* b) {
    std::vector<Dimension> dims;
    for (std::size_t i = 0; i < shape.size(); ++i) {
        if (shape[i] == 1) continue;
        Dimension d{shape[i], {out.strides[i], a.place.strides[i], 0}};
        d.stride[2] = b != nullptr && !b->is_scalar ? b->place.strides[i] : d.stride[0];
        dims.push_back(d);
    }
    // Too large for one register: halves of a dimension, thirds, … whatever divides it.
    for (std::size_t i = 0; i < dims.size(); ++i) {
        if (dims[i].size <= kMostInDimension) continue;
        std::int64_t inner = kMostInDimension;
        while (dims[i].size % inner != 0) --inner;
        Dimension outer = dims[i];
        outer.size /= inner;
        for (auto& s : outer.stride) s *= inner;
        dims[i].size = inner;
        dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(i), outer);
        --i;
    }
    return dims;
}

bool unit_channels(const Dimension& d, bool has_b) {
    // The first operand cannot repeat channels; the second can, by its broadcast bit.
    return d.stride[0] == 1 && d.stride[1] == 1 && (!has_b || d.stride[2] == 1 || d.stride[2] == 0);
}

}  // namespace

host::Result<void> Lowerer::elementwise(npu::Operation op, const Shape& shape, const Place& out,
                                        std::int32_t out_zero_point, Operand a, std::optional<Operand> b,
                                        std::shared_ptr<const Table> table) {
    // What repeats or is a scalar is the second operand; the hardware can exchange their roles again.
    const auto swaps = [&] {
        if (!b) return false;
        if (a.is_scalar != b->is_scalar) return a.is_scalar;
        if (a.is_scalar) return false;
        const auto repeats_channels = [&](const Operand& o) {
            return shape.back() != 1 && o.place.strides.back() == 0;
        };
        return !shape.empty() && repeats_channels(a) && !repeats_channels(*b);
    };
    if (swaps()) {
        std::swap(a, *b);
        op.operands_reversed = !op.operands_reversed;  // operand A stays operand A, with its scale (section 4.3)
    }
    if (a.is_scalar) {
        // Two constants: one of them becomes memory.
        std::vector<std::uint8_t> bytes(a.type.bytes);
        for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(a.scalar >> (8 * i));
        a.place = {constant_tensor("scalar", a.type, {1}, std::move(bytes)), 0,
                   std::vector<std::int64_t>(shape.size(), 0)};
        a.is_scalar = false;
    }
    op.ifm.type = a.type;
    op.ifm2.type = b ? b->type : a.type;
    const bool has_b = b && !b->is_scalar;
    std::vector<Dimension> dims = dimensions(shape, out, a, b ? &*b : nullptr);
    if (dims.empty()) dims.push_back({1, {1, 1, 1}});
    // A tensor of one element is contiguous whatever its strides say.
    if (!unit_channels(dims.back(), has_b)) dims.push_back({1, {1, 1, 1}});
    while (dims.size() > 3) {
        // The outermost pair that lies as one in every map.
        bool joined = false;
        for (std::size_t i = 0; i + 1 < dims.size() && !joined; ++i) {
            if (!joins(dims[i], dims[i + 1])) continue;
            const std::int64_t size = dims[i].size * dims[i + 1].size;
            dims[i] = dims[i + 1];
            dims[i].size = size;
            dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(i + 1));
            joined = true;
        }
        if (!joined) break;
    }
    // Unrolled: the smallest of the dimensions that are too many, channels always stay.
    std::vector<Dimension> loops;
    while (dims.size() > 3) {
        const auto smallest = std::min_element(dims.begin(), dims.end() - 1,
                                               [](const Dimension& x, const Dimension& y) { return x.size < y.size; });
        loops.push_back(*smallest);
        dims.erase(smallest);
    }
    while (dims.size() < 3) dims.insert(dims.begin(), Dimension{});
    std::int64_t rounds = 1;
    for (const Dimension& d : loops) rounds *= d.size;
    constexpr std::int64_t kMostOperations = 20000;
    if (rounds > kMostOperations)
        return host::failure(ErrorCode::NotSupported, "{}: {} operations of the NPU would be needed", result_name(),
                             rounds);

    const auto view = [&](const Place& p, std::size_t which, std::int64_t round, std::int32_t zero_point) {
        View v;
        v.tensor = p.tensor;
        v.offset = p.offset;
        for (const Dimension& d : loops) {
            v.offset += round % d.size * d.stride[which];
            round /= d.size;
        }
        v.height = static_cast<std::uint32_t>(dims[0].size);
        v.width = static_cast<std::uint32_t>(dims[1].size);
        v.depth = static_cast<std::uint32_t>(dims[2].size);
        v.stride_x = v.width == 1 ? v.depth : dims[1].stride[which];
        v.stride_y = v.height == 1 ? v.stride_x * v.width : dims[0].stride[which];
        v.zero_point = zero_point;
        return v;
    };
    for (std::int64_t round = 0; round < rounds; ++round) {
        Step step;
        step.op = op;
        step.table = table;
        step.ofm = view(out, 0, round, out_zero_point);
        step.ifm = view(a.place, 1, round, a.zero_point);
        if (b && b->is_scalar) {
            step.op.ifm2_is_scalar = true;
            step.op.ifm2_scalar = b->scalar;
            step.ifm2.zero_point = b->zero_point;
        } else if (b) {
            step.ifm2 = view(b->place, 2, round, b->zero_point);
            const auto repeated = [&](std::size_t d) { return dims[d].size > 1 && dims[d].stride[2] == 0; };
            step.op.ifm2_broadcast_h = repeated(0);
            step.op.ifm2_broadcast_w = repeated(1);
            step.op.ifm2_broadcast_c = repeated(2);
            if (step.op.ifm2_broadcast_c) step.ifm2.depth = 1;
            if (step.op.ifm2_broadcast_w) step.ifm2.width = 1;
            if (step.op.ifm2_broadcast_h) step.ifm2.height = 1;
            if (step.ifm2.width == 1) step.ifm2.stride_x = step.ifm2.depth;
            if (step.ifm2.height == 1) step.ifm2.stride_y = step.ifm2.stride_x * step.ifm2.width;
        }
        add_step(std::move(step));
    }
    return {};
}

host::Result<void> Lowerer::copy(const Shape& shape, npu::ElementType type, const Place& from, const Place& to) {
    // The larger of an element and the type's least value is the element.
    Operand a, least;
    a.place = from;
    a.type = least.type = type;
    least.is_scalar = true;
    least.scalar = static_cast<std::int32_t>(type.bytes == 4 ? -32768 : type.min());
    if (type.bytes == 4) {
        // The scalar register has 16 bits: add 0 instead.
        least.scalar = 0;
        return elementwise(plain_operation(npu::OpKind::Add, type, type), shape, to, 0, a, least);
    }
    return elementwise(plain_operation(npu::OpKind::Max, type, type), shape, to, 0, a, least);
}

host::Result<void> Lowerer::map_bytes(const Shape& shape, const Place& from, npu::ElementType from_type,
                                      const Place& to, npu::ElementType to_type,
                                      const std::array<std::int32_t, 256>& table) {
    auto bytes = std::make_shared<Table>(256);
    for (std::size_t i = 0; i < 256; ++i) (*bytes)[i] = static_cast<std::uint8_t>(table[i]);
    Operand a, b;
    a.place = from;
    a.type = b.type = from_type;
    b.is_scalar = true;
    if (from_type.is_signed != to_type.is_signed) {
        // The table's index follows the type of the output (ethos-u65, section 6.2), so the number is moved into that
        // type's range first: times one, and a zero point of 128. MAX knows no zero points (section 5.7).
        b.scalar = 1;
        npu::Operation op = plain_operation(npu::OpKind::Mul, from_type, to_type);
        op.activation.function = npu::Activation::Function::Lut;
        return elementwise(op, shape, to, static_cast<std::int32_t>(to_type.min() - from_type.min()), a, b,
                           std::move(bytes));
    }
    npu::Operation op = plain_operation(npu::OpKind::Max, from_type, to_type);
    op.activation.raw_min = static_cast<std::uint16_t>(from_type.min());
    op.activation.raw_max = static_cast<std::uint16_t>(from_type.max());
    op.activation.function = npu::Activation::Function::Lut;
    b.scalar = static_cast<std::int32_t>(from_type.min());
    return elementwise(op, shape, to, 0, a, b, std::move(bytes));
}

host::Result<void> Lowerer::rescale(const Shape& shape, const Operand& from, const Place& to, npu::ElementType to_type,
                                    std::int32_t to_zero_point, npu::Scale factor, Limits limits) {
    npu::Operation op = plain_operation(npu::OpKind::Mul, from.type, to_type);
    op.ofm_scale = factor;
    op.ofm_rounding = rounding();
    set_limits(op, to_type, limits);
    Operand one;
    one.type = from.type;
    one.is_scalar = true;
    one.scalar = 1;
    return elementwise(op, shape, to, to_zero_point, from, one);
}

}  // namespace talpa::compiler
