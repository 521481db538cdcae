// PT2E's quantize and dequantize (model-formats, section 1.6). Dequantizing makes no node: the value stands for the
// reals already. Quantizing makes a Requantize, which later joins the operator before it (passes/quantize.h).
#include <fmt/format.h>

#include <algorithm>

#include "compiler/graph/check.h"
#include "compiler/graph/constant.h"
#include "compiler/import/pt2/call.h"

namespace talpa::compiler::import::pt2 {
namespace {

using host::failure;
using host::Result;

Result<DType> quantized_type(Call& call) {
    TRY_ASSIGN(const auto raw, call.dtype("dtype"));
    switch (raw) {
        case RawType::UInt8:
            return DType::UInt8;
        case RawType::Int8:
            return DType::Int8;
        case RawType::Int16:
            return DType::Int16;
        case RawType::Int32:
            return DType::Int32;
        default:
            return failure(ErrorCode::NotSupported, "quantized to {}", raw_name(raw));
    }
}

Result<double> one_number(Call& call, std::string_view name) {
    if (!call.is_tensor(name)) return call.number(name);
    TRY_ASSIGN(const auto id, call.tensor(name));
    const Value& v = call.b[id];
    if (!v.is_constant() || element_count(v.shape) != 1)
        return failure(ErrorCode::NotSupported, "'{}' is computed at run time (dynamic quantization)", name);
    return v.type == DType::Float32 ? static_cast<double>(real_numbers(v)[0])
                                    : static_cast<double>(stored_integers(v)[0]);
}

Result<Quantization> read_range(Call& call) {
    Quantization q;
    TRY_ASSIGN(q.type, quantized_type(call));
    TRY_ASSIGN(const auto min, one_number(call, "quant_min"));
    TRY_ASSIGN(const auto max, one_number(call, "quant_max"));
    if (!(min >= INT32_MIN && max <= INT32_MAX && min < max))
        return failure(ErrorCode::InvalidProgram, "quantized to {} to {}", min, max);
    q.min = static_cast<std::int64_t>(min);
    q.max = static_cast<std::int64_t>(max);
    if (call.has("out_dtype")) {
        TRY_ASSIGN(const auto out, call.dtype("out_dtype"));
        if (out != RawType::Float32) return failure(ErrorCode::NotSupported, "dequantized to {}", raw_name(out));
    }
    call.ignore({"out_dtype", "eps"});
    return q;
}

Result<Quantization> read_per_tensor(Call& call) {
    TRY_ASSIGN(Quantization q, read_range(call));
    TRY_ASSIGN(const auto scale, one_number(call, "scale"));
    TRY_ASSIGN(const auto zero, one_number(call, "zero_point"));
    if (!(zero >= INT32_MIN && zero <= INT32_MAX)) return failure(ErrorCode::InvalidProgram, "zero point {}", zero);
    q.scales = {scale};
    q.zero_points = {static_cast<std::int32_t>(zero)};
    return q;
}

Result<Quantization> read_per_channel(Call& call, std::size_t rank) {
    Builder& b = call.b;
    TRY_ASSIGN(Quantization q, read_range(call));
    TRY_ASSIGN(const auto scales, call.tensor("scales"));
    TRY_ASSIGN(const auto zeros, call.optional_tensor("zero_points"));
    TRY_ASSIGN(q.axis, call.dimension("axis", rank));
    if (!b[scales].is_constant() || (zeros != kNoValue && !b[zeros].is_constant()))
        return failure(ErrorCode::NotSupported, "scales are computed at run time (dynamic quantization)");
    for (const float s : real_numbers(b[scales])) q.scales.push_back(static_cast<double>(s));
    if (zeros == kNoValue) {
        q.zero_points.assign(q.scales.size(), 0);
        return q;
    }
    const auto whole = b[zeros].type == DType::Float32 ? std::vector<std::int64_t>() : stored_integers(b[zeros]);
    if (whole.size() != q.scales.size())
        return failure(ErrorCode::InvalidProgram, "{} scales and {} zero points", q.scales.size(), whole.size());
    for (const auto z : whole) {
        if (z < INT32_MIN || z > INT32_MAX) return failure(ErrorCode::InvalidProgram, "zero point {}", z);
        q.zero_points.push_back(static_cast<std::int32_t>(z));
    }
    return q;
}

Result<void> quantize(Call& call, ValueId x, const Quantization& q) {
    TRY(check_quantization(q, call.b[x].shape));
    if (call.b[x].type != DType::Float32) return failure(ErrorCode::InvalidProgram, "quantizes what are no reals");
    if (!q.per_tensor() && !call.b[x].is_constant())
        return failure(ErrorCode::NotSupported, "an activation is quantized per channel; only weights can be");
    TRY_ASSIGN(const auto id, call.b.requantize(x, q, call.name()));
    call.give(Bound{id, true});
    return {};
}

/// The value behind integers that are now said to stand for reals.
Result<void> dequantize(Call& call, const Bound& from, const Quantization& q) {
    Builder& b = call.b;
    Value& v = b.graph()[from.id];
    TRY(check_quantization(q, v.shape));
    if (v.quantization) {
        if (*v.quantization != q)
            return failure(ErrorCode::InvalidProgram, "dequantizes '{}' by other numbers than it was quantized by",
                           v.name);
        call.give(Bound{from.id, false});
        return {};
    }
    if (v.type != q.type)
        return failure(ErrorCode::InvalidProgram, "dequantizes {} as {}", dtype_name(v.type), dtype_name(q.type));
    if (v.is_constant()) {
        Value reals{.name = v.name + ".reals", .shape = v.shape, .quantization = q, .constant = v.constant};
        call.give(Bound{b.value(std::move(reals)), false});
        return {};
    }
    // A model's input that comes in as integers.
    if (std::ranges::find(b.graph().inputs, from.id) == b.graph().inputs.end())
        return failure(ErrorCode::NotSupported, "dequantizes the result of an operator on integers");
    v.type = DType::Float32;
    v.quantization = q;
    call.give(Bound{from.id, false});
    return {};
}

Result<void> import_quantize(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.tensor("input"));
    TRY_ASSIGN(const auto q, read_per_tensor(call));
    return quantize(call, x, q);
}

Result<void> import_dequantize(Call& call, Op) {
    TRY_ASSIGN(const auto from, call.bound("input"));
    TRY_ASSIGN(const auto q, read_per_tensor(call));
    return dequantize(call, from, q);
}

Result<void> import_quantize_channels(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.tensor("input"));
    TRY_ASSIGN(const auto q, read_per_channel(call, call.b[x].shape.size()));
    return quantize(call, x, q);
}

Result<void> import_dequantize_channels(Call& call, Op) {
    TRY_ASSIGN(const auto from, call.bound("input"));
    TRY_ASSIGN(const auto q, read_per_channel(call, call.b[from.id].shape.size()));
    return dequantize(call, from, q);
}

constexpr Operator kTable[] = {
    {"quantized_decomposed.quantize_per_tensor.default", import_quantize},
    {"quantized_decomposed.quantize_per_tensor.tensor", import_quantize},
    {"quantized_decomposed.quantize_per_tensor.tensor2", import_quantize},
    {"quantized_decomposed.dequantize_per_tensor.default", import_dequantize},
    {"quantized_decomposed.dequantize_per_tensor.tensor", import_dequantize},
    {"quantized_decomposed.dequantize_per_tensor.tensor2", import_dequantize},
    {"quantized_decomposed.quantize_per_channel.default", import_quantize_channels},
    {"quantized_decomposed.dequantize_per_channel.default", import_dequantize_channels},
};

}  // namespace

std::span<const Operator> quantize_operators() {
    return kTable;
}

}  // namespace talpa::compiler::import::pt2
