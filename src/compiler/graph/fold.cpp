#include "compiler/graph/fold.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "compiler/graph/constant.h"
#include "compiler/graph/infer.h"
#include "compiler/graph/ops.h"

namespace talpa::compiler {
namespace {

ConstantData shared(Bytes bytes) {
    return std::make_shared<const Bytes>(std::move(bytes));
}

ConstantData store_reals(std::span<const float> reals, const Value& result) {
    Bytes bytes(reals.size() * dtype_size(result.stored_type()));
    if (result.stored_type() == DType::Float32) {
        if (!reals.empty()) std::memcpy(bytes.data(), reals.data(), bytes.size());
        return shared(std::move(bytes));
    }
    const auto size = dtype_size(result.stored_type());
    for (std::size_t i = 0; i < reals.size(); ++i) {
        std::int64_t q = 0;
        if (result.quantization) {
            const auto c = channel_of(result, static_cast<std::int64_t>(i));
            const auto& z = *result.quantization;
            q = quantize_number(reals[i], z.scales[c], z.zero_points[c], z.min, z.max);
        } else {
            q = static_cast<std::int64_t>(reals[i]);
        }
        std::memcpy(bytes.data() + i * size, &q, size);  // little-endian
    }
    return shared(std::move(bytes));
}

ConstantData store_integers(std::span<const std::int64_t> numbers, DType type) {
    const auto size = dtype_size(type);
    Bytes bytes(numbers.size() * size);
    for (std::size_t i = 0; i < numbers.size(); ++i) std::memcpy(bytes.data() + i * size, &numbers[i], size);
    return shared(std::move(bytes));
}

/// Strides of `from` as `to` sees it by broadcasting.
std::vector<std::int64_t> broadcast_strides(const Shape& from, const Shape& to) {
    const auto own = row_major_strides(from);
    std::vector<std::int64_t> strides(to.size(), 0);
    const std::size_t lead = to.size() - from.size();
    for (std::size_t d = 0; d < from.size(); ++d)
        if (from[d] != 1) strides[lead + d] = own[d];
    return strides;
}

template <typename T>
std::vector<T> expanded(const std::vector<T>& in, const Shape& from, const Shape& to) {
    const auto bytes = gather_strided({reinterpret_cast<const std::uint8_t*>(in.data()), in.size() * sizeof(T)},
                                      sizeof(T), to, broadcast_strides(from, to), 0);
    std::vector<T> out(bytes.size() / sizeof(T));
    if (!out.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
}

template <typename T>
bool binary(Op op, T a, T b, T& out) {
    switch (op) {
        case Op::Add:
            out = a + b;
            return true;
        case Op::Sub:
            out = a - b;
            return true;
        case Op::Mul:
            out = a * b;
            return true;
        case Op::Div:
            if constexpr (std::is_integral_v<T>)
                if (b == 0 || b == -1) return out = -a, b == -1;
            out = a / b;
            return true;
        case Op::Minimum:
            out = std::min(a, b);
            return true;
        case Op::Maximum:
            out = std::max(a, b);
            return true;
        case Op::Pow:
            if constexpr (std::is_floating_point_v<T>) {
                out = std::pow(a, b);
                return true;
            }
            return false;
        default:
            return false;
    }
}

/// Such a constant is refused by whoever stores it, and has no integer.
bool any_nan(std::span<const float> numbers) {
    return std::ranges::any_of(numbers, [](float v) { return std::isnan(v); });
}

bool unary(Op op, const Attributes& attributes, float x, float& out) {
    switch (op) {
        case Op::ClampOp: {
            const Clamp& c = std::get<UnaryAttr>(attributes).clamp;
            out = static_cast<float>(std::min(std::max(static_cast<double>(x), c.min), c.max));
            return true;
        }
        case Op::Exp:
            out = std::exp(x);
            return true;
        case Op::Log:
            out = std::log(x);
            return true;
        case Op::Sqrt:
            out = std::sqrt(x);
            return true;
        case Op::Rsqrt:
            out = 1.0F / std::sqrt(x);
            return true;
        case Op::Abs:
            out = std::fabs(x);
            return true;
        case Op::Neg:
            out = -x;
            return true;
        case Op::Reciprocal:
            out = 1.0F / x;
            return true;
        case Op::Square:
            out = x * x;
            return true;
        case Op::Floor:
            out = std::floor(x);
            return true;
        case Op::Ceil:
            out = std::ceil(x);
            return true;
        case Op::Round:
            out = std::nearbyint(x);
            return true;
        case Op::Sigmoid:
            out = 1.0F / (1.0F + std::exp(-x));
            return true;
        case Op::Tanh:
            out = std::tanh(x);
            return true;
        case Op::Requantize:
            out = x;
            return true;
        default:
            return false;
    }
}

ConstantData fold_binary(Op op, const Value& a, const Value& b, const Value& result) {
    const bool integers = a.type != DType::Float32 && b.type != DType::Float32;
    if (integers) {
        auto x = expanded(stored_integers(a), a.shape, result.shape);
        const auto y = expanded(stored_integers(b), b.shape, result.shape);
        for (std::size_t i = 0; i < x.size(); ++i) {
            std::uint64_t wide = 0;  // overflow of a stranger's numbers wraps rather than being undefined
            if (op == Op::Add || op == Op::Sub || op == Op::Mul) {
                const auto p = static_cast<std::uint64_t>(x[i]), q = static_cast<std::uint64_t>(y[i]);
                wide = op == Op::Add ? p + q : op == Op::Sub ? p - q : p * q;
                x[i] = static_cast<std::int64_t>(wide);
            } else if (x[i] == INT64_MIN || !binary(op, x[i], y[i], x[i])) {
                return nullptr;
            }
        }
        return store_integers(x, result.type);
    }
    auto x = expanded(real_numbers(a), a.shape, result.shape);
    const auto y = expanded(real_numbers(b), b.shape, result.shape);
    for (std::size_t i = 0; i < x.size(); ++i)
        if (!binary(op, x[i], y[i], x[i])) return nullptr;
    return any_nan(x) ? nullptr : store_reals(x, result);
}

ConstantData fold_unary(Op op, const Attributes& attributes, const Value& a, const Value& result) {
    if (a.type != DType::Float32) return nullptr;
    auto x = real_numbers(a);
    for (float& v : x)
        if (!unary(op, attributes, v, v)) return nullptr;
    return any_nan(x) ? nullptr : store_reals(x, result);
}

ConstantData fold_concat(const Graph& g, const AxisAttr& a, std::span<const ValueId> in, const Value& result) {
    const auto axis = static_cast<std::size_t>(a.axis);
    std::int64_t outer = 1;
    for (std::size_t d = 0; d < axis; ++d) outer *= result.shape[d];
    const auto item = static_cast<std::int64_t>(dtype_size(result.stored_type()));
    Bytes out;
    out.reserve(static_cast<std::size_t>(element_count(result.shape) * item));
    for (std::int64_t o = 0; o < outer; ++o)
        for (const auto id : in) {
            const Value& v = g[id];
            if (v.stored_type() != result.stored_type() || v.quantization != result.quantization) return nullptr;
            const std::int64_t run = element_count(v.shape) / std::max<std::int64_t>(outer, 1) * item;
            const auto* begin = v.constant->data() + o * run;
            out.insert(out.end(), begin, begin + run);
        }
    return shared(std::move(out));
}

ConstantData fold_gather(const Value& x, const Value& indices, const AxisAttr& a, const Value& result) {
    const auto axis = static_cast<std::size_t>(a.axis);
    std::int64_t outer = 1, inner = static_cast<std::int64_t>(dtype_size(x.stored_type()));
    for (std::size_t d = 0; d < axis; ++d) outer *= x.shape[d];
    for (std::size_t d = axis + 1; d < x.shape.size(); ++d) inner *= x.shape[d];
    const auto count = x.shape[axis];
    Bytes out;
    out.reserve(static_cast<std::size_t>(element_count(result.shape)) * dtype_size(x.stored_type()));
    const auto picked = stored_integers(indices);
    for (std::int64_t o = 0; o < outer; ++o)
        for (auto i : picked) {
            if (i < 0) i += count;
            if (i < 0 || i >= count) return nullptr;
            const auto* begin = x.constant->data() + (o * count + i) * inner;
            out.insert(out.end(), begin, begin + inner);
        }
    return shared(std::move(out));
}

ConstantData fold_movement(const Graph& g, Op op, const Attributes& attributes, std::span<const ValueId> in,
                           const Value& result) {
    const Value& x = g[in[0]];
    const auto item = dtype_size(x.stored_type());
    const auto own = row_major_strides(x.shape);
    std::vector<std::int64_t> strides(result.shape.size());
    std::int64_t offset = 0;
    switch (op) {
        case Op::Reshape:
            return x.constant;
        case Op::Permute:
            for (std::size_t d = 0; d < strides.size(); ++d)
                strides[d] = own[static_cast<std::size_t>(std::get<PermuteAttr>(attributes).order[d])];
            break;
        case Op::Slice: {
            const auto& a = std::get<SliceAttr>(attributes);
            for (std::size_t d = 0; d < strides.size(); ++d) {
                strides[d] = own[d] * a.steps[d];
                offset += own[d] * a.starts[d];
            }
            break;
        }
        case Op::Expand:
            strides = broadcast_strides(x.shape, result.shape);
            break;
        case Op::Concat:
            return fold_concat(g, std::get<AxisAttr>(attributes), in, result);
        case Op::Gather:
            return fold_gather(x, g[in[1]], std::get<AxisAttr>(attributes), result);
        default:
            return nullptr;
    }
    return shared(gather_strided(*x.constant, item, result.shape, strides, offset));
}

}  // namespace

Bytes gather_strided(std::span<const std::uint8_t> in, std::size_t item, const Shape& shape,
                     std::span<const std::int64_t> strides, std::int64_t offset) {
    const auto count = static_cast<std::size_t>(element_count(shape));
    Bytes out(count * item);
    if (count == 0) return out;
    if (std::ranges::equal(row_major_strides(shape), strides)) {
        std::memcpy(out.data(), in.data() + static_cast<std::size_t>(offset) * item, out.size());
        return out;
    }
    std::vector<std::int64_t> index(shape.size(), 0);
    std::int64_t at = offset;
    for (std::size_t i = 0; i < count; ++i) {
        std::memcpy(out.data() + i * item, in.data() + static_cast<std::size_t>(at) * item, item);
        for (std::size_t d = shape.size(); d-- > 0;) {
            at += strides[d];
            if (++index[d] < shape[d]) break;
            at -= strides[d] * shape[d];
            index[d] = 0;
        }
    }
    return out;
}

ConstantData fold(const Graph& g, Op op, const Attributes& attributes, std::span<const ValueId> in,
                  const Value& result) {
    if (in.empty() || element_count(result.shape) > kFoldLimit) return nullptr;
    for (const auto id : in)
        if (id == kNoValue || !g[id].is_constant()) return nullptr;
    // Of no elements there may be a trillion rows.
    const OpClass kind = op_facts(op).kind;
    if (element_count(result.shape) == 0 &&
        (kind == OpClass::Binary || kind == OpClass::Unary || kind == OpClass::Movement))
        return shared({});
    switch (kind) {
        case OpClass::Binary:
            return fold_binary(op, g[in[0]], g[in[1]], result);
        case OpClass::Unary:
            return fold_unary(op, attributes, g[in[0]], result);
        case OpClass::Movement:
            return fold_movement(g, op, attributes, in, result);
        default:
            return nullptr;
    }
}

}  // namespace talpa::compiler
