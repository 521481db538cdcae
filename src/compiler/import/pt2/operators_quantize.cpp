// PT2E's quantize and dequantize (model-formats, section 1.6). Dequantizing makes no node: the value stands for the
// reals already. Quantizing makes a Requantize, which later joins the operator before it (passes/quantize.h).
#include "compiler/graph/constant.h"
#include "compiler/import/pt2/call.h"
#include "compiler/import/quantization.h"

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

/// Type and limits; the rest is the caller's.
Result<FoundQuantization> read_range(Call& call) {
    FoundQuantization q;
    TRY_ASSIGN(q.type, quantized_type(call));
    TRY_ASSIGN(const auto min, one_number(call, "quant_min"));
    TRY_ASSIGN(const auto max, one_number(call, "quant_max"));
    if (!(min >= INT32_MIN && max <= INT32_MAX && min < max))
        return failure(ErrorCode::InvalidProgram, "quantized to {} to {}", min, max);
    q.limits = {static_cast<std::int64_t>(min), static_cast<std::int64_t>(max)};
    if (call.has("out_dtype")) {
        TRY_ASSIGN(const auto out, call.dtype("out_dtype"));
        if (out != RawType::Float32) return failure(ErrorCode::NotSupported, "dequantized to {}", raw_name(out));
    }
    call.ignore({"out_dtype", "eps"});
    return q;
}

Result<Quantization> read_per_tensor(Call& call, const Shape& shape) {
    TRY_ASSIGN(auto found, read_range(call));
    TRY_ASSIGN(const auto scale, one_number(call, "scale"));
    TRY_ASSIGN(const auto zero, one_number(call, "zero_point"));
    if (!(zero >= INT32_MIN && zero <= INT32_MAX)) return failure(ErrorCode::InvalidProgram, "zero point {}", zero);
    found.scales = {scale};
    found.zero_points = {static_cast<std::int64_t>(zero)};
    return quantization_of(found, shape);
}

Result<Quantization> read_per_channel(Call& call, const Shape& shape) {
    Builder& b = call.b;
    TRY_ASSIGN(auto found, read_range(call));
    TRY_ASSIGN(const auto scales, call.tensor("scales"));
    TRY_ASSIGN(const auto zeros, call.optional_tensor("zero_points"));
    TRY_ASSIGN(found.axis, call.dimension("axis", shape.size()));
    if (!b[scales].is_constant() || (zeros != kNoValue && !b[zeros].is_constant()))
        return failure(ErrorCode::NotSupported, "scales are computed at run time (dynamic quantization)");
    for (const float s : real_numbers(b[scales])) found.scales.push_back(static_cast<double>(s));
    if (zeros != kNoValue) {
        if (b[zeros].type != DType::Float32) found.zero_points = stored_integers(b[zeros]);
        if (found.zero_points.size() != found.scales.size())
            return failure(ErrorCode::InvalidProgram, "{} scales and {} zero points", found.scales.size(),
                           found.zero_points.size());
    }
    return quantization_of(found, shape);
}

using ReadFunction = Result<Quantization> (*)(Call&, const Shape&);

template <ReadFunction read>
Result<void> import_quantize(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.tensor("input"));
    const Shape shape = call.b[x].shape;
    TRY_ASSIGN(const auto q, read(call, shape));
    TRY_ASSIGN(const auto id, quantize(call.b, x, q, call.name()));
    call.give(Bound{id, true});
    return {};
}

template <ReadFunction read>
Result<void> import_dequantize(Call& call, Op) {
    TRY_ASSIGN(const auto from, call.bound("input"));
    const Shape shape = call.b[from.id].shape;
    TRY_ASSIGN(const auto q, read(call, shape));
    TRY_ASSIGN(const auto id, dequantize(call.b, from.id, q));
    call.give(Bound{id, false});
    return {};
}

constexpr Operator kQuantizeOperators[] = {
    {"quantized_decomposed.quantize_per_tensor.default", import_quantize<read_per_tensor>},
    {"quantized_decomposed.quantize_per_tensor.tensor", import_quantize<read_per_tensor>},
    {"quantized_decomposed.quantize_per_tensor.tensor2", import_quantize<read_per_tensor>},
    {"quantized_decomposed.dequantize_per_tensor.default", import_dequantize<read_per_tensor>},
    {"quantized_decomposed.dequantize_per_tensor.tensor", import_dequantize<read_per_tensor>},
    {"quantized_decomposed.dequantize_per_tensor.tensor2", import_dequantize<read_per_tensor>},
    {"quantized_decomposed.quantize_per_channel.default", import_quantize<read_per_channel>},
    {"quantized_decomposed.dequantize_per_channel.default", import_dequantize<read_per_channel>},
};

}  // namespace

std::span<const Operator> quantize_operators() {
    return kQuantizeOperators;
}

}  // namespace talpa::compiler::import::pt2
