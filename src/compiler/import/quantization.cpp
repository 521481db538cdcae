#include "compiler/import/quantization.h"

#include <algorithm>
#include <limits>

#include "compiler/graph/check.h"

namespace talpa::compiler::import {

using host::failure;
using host::Result;

namespace {

std::optional<std::pair<std::int64_t, std::int64_t>> limits_of(DType type) {
    switch (type) {
        case DType::UInt8:
            return std::pair{0, 255};
        case DType::Int8:
            return std::pair{-128, 127};
        case DType::Int16:
            return std::pair{-32768, 32767};
        case DType::Int32:
            return std::pair{INT32_MIN, INT32_MAX};
        case DType::Int64:
            return std::pair{INT64_MIN, INT64_MAX};
        default:
            return std::nullopt;
    }
}

}  // namespace

Result<Quantization> quantization_of(const FoundQuantization& found, const Shape& shape) {
    const auto limits = found.limits ? found.limits : limits_of(found.type);
    if (!limits) return failure(ErrorCode::NotSupported, "quantized to {}", dtype_name(found.type));
    Quantization q{.type = found.type, .scales = found.scales, .zero_points = {}};
    q.min = limits->first;
    q.max = limits->second;
    const auto& zeros = found.zero_points;
    if (zeros.size() > 1 && zeros.size() != q.scales.size())
        return failure(ErrorCode::InvalidProgram, "{} scales and {} zero points", q.scales.size(), zeros.size());
    for (std::size_t i = 0; i < q.scales.size(); ++i) {
        const std::int64_t z = zeros.empty() ? 0 : zeros[std::min(i, zeros.size() - 1)];
        if (z < INT32_MIN || z > INT32_MAX) return failure(ErrorCode::InvalidProgram, "zero point {}", z);
        q.zero_points.push_back(static_cast<std::int32_t>(z));
    }
    if (found.axis >= 0 || q.scales.size() > 1) {
        if (found.axis < 0 || found.axis >= static_cast<int>(shape.size()))
            return failure(ErrorCode::InvalidProgram, "quantized along dimension {} of {}", found.axis, shape.size());
        q.axis = found.axis;
    }
    TRY(check_quantization(q, shape));
    return q;
}

Result<ValueId> quantize(Builder& b, ValueId x, const Quantization& q, const std::string& name) {
    if (b[x].type != DType::Float32) return failure(ErrorCode::InvalidProgram, "quantizes what are no reals");
    if (!q.per_tensor() && !b[x].is_constant())
        return failure(ErrorCode::NotSupported, "an activation is quantized per channel; only weights can be");
    return b.requantize(x, q, name);
}

Result<ValueId> dequantize(Builder& b, ValueId from, const Quantization& q) {
    Value& v = b.graph()[from];
    if (v.quantization) {
        if (*v.quantization == q) return from;
        return failure(ErrorCode::InvalidProgram, "dequantizes '{}' by other numbers than it was quantized by", v.name);
    }
    if (v.type != q.type)
        return failure(ErrorCode::InvalidProgram, "dequantizes {} as {}", dtype_name(v.type), dtype_name(q.type));
    if (v.is_constant())
        return b.value({.name = v.name + ".reals", .shape = v.shape, .quantization = q, .constant = v.constant});
    // A model's input that comes in as integers.
    if (std::ranges::find(b.graph().inputs, from) == b.graph().inputs.end())
        return failure(ErrorCode::NotSupported, "dequantizes the result of an operator on integers");
    v.type = DType::Float32;
    v.quantization = q;
    return from;
}

}  // namespace talpa::compiler::import
