#include "runtime/operators/quantize.h"

#include <limits>

namespace talpa::runtime::operators {
namespace {

struct Parameters {
    float scale = 1;
    std::int32_t zero_point = 0;
    std::int32_t min = 0, max = 0;  ///< of the quantized numbers
};

struct IntegerRange {
    std::int64_t min = 0, max = 0;  ///< both 0: no quantized type
};

IntegerRange range_of(ScalarType type) {
    switch (type) {
        case ScalarType::Int8:
            return {INT8_MIN, INT8_MAX};
        case ScalarType::UInt8:
            return {0, UINT8_MAX};
        case ScalarType::Int16:
            return {INT16_MIN, INT16_MAX};
        case ScalarType::UInt16:
            return {0, UINT16_MAX};
        case ScalarType::Int32:
            return {INT32_MIN, INT32_MAX};
        default:
            return {};
    }
}

// Arguments 1 and 2, given as numbers or as tensors of one element (overload Tensor_out: float64 and int64).
Result<void> read_scale(Arguments& args, bool by_tensors, double& scale, std::int64_t& zero_point) {
    if (!by_tensors) {
        TRY_ASSIGN(scale, args.number(1));
        TRY_ASSIGN(zero_point, args.integer(2));
        return {};
    }
    TRY_ASSIGN(const Tensor* const s, args.tensor(1));
    TRY_ASSIGN(const Tensor* const z, args.tensor(2));
    if (s->numel() != 1 || z->numel() != 1 || (s->type != ScalarType::Float64 && s->type != ScalarType::Float32) ||
        (z->type != ScalarType::Int64 && z->type != ScalarType::Int32))
        return args.error(ErrorCode::InvalidType,
                          "{}: scale and zero_point must be one float and one integer, are {} and {}",
                          scalar_name(s->type), scalar_name(z->type));
    scale = s->type == ScalarType::Float64 ? *s->as<double>() : static_cast<double>(*s->as<float>());
    zero_point = z->type == ScalarType::Int64 ? *z->as<std::int64_t>() : *z->as<std::int32_t>();
    return {};
}

// Arguments 1 to 5 for a quantized tensor of type `quantized`.
Result<Parameters> read_parameters(Arguments& args, bool by_tensors, ScalarType quantized) {
    double scale = 0;
    std::int64_t zero_point = 0;
    TRY(read_scale(args, by_tensors, scale, zero_point));
    TRY_ASSIGN(const std::int64_t min, args.integer(3));
    TRY_ASSIGN(const std::int64_t max, args.integer(4));
    TRY_ASSIGN(const std::int64_t dtype, args.integer(5));
    if (dtype != static_cast<std::int64_t>(quantized))
        return args.error(ErrorCode::InvalidType, "{}: dtype is {}, the quantized tensor is {}", dtype,
                          scalar_name(quantized));
    const IntegerRange range = range_of(quantized);
    if (range.max == 0)
        return args.error(ErrorCode::InvalidType, "{}: the quantized tensor is {}", scalar_name(quantized));
    if (min > max || min < range.min || max > range.max)
        return args.error(ErrorCode::InvalidArgument, "{}: the range {}..{} does not fit {}", min, max,
                          scalar_name(quantized));
    if (zero_point < INT32_MIN || zero_point > INT32_MAX)
        return args.error(ErrorCode::InvalidArgument, "{}: zero_point is {}", zero_point);
    Parameters p;
    p.scale = static_cast<float>(scale);
    if (!(p.scale > 0) || p.scale > std::numeric_limits<float>::max())
        return args.error(ErrorCode::InvalidArgument, "{}: the scale is no positive number");
    p.zero_point = static_cast<std::int32_t>(zero_point);
    p.min = static_cast<std::int32_t>(min);
    p.max = static_cast<std::int32_t>(max);
    return p;
}

// Adding 1.5 * 2^23 leaves no bits for a fraction: the sum is rounded half to even, as float32 arithmetic does, and the
// difference is exact. Right for |v| <= 2^22.
float round_half_even(float v) {
    constexpr float kShift = 12582912.0F;
    return (v + kShift) - kShift;
}

// The difference to the zero point of the quantized limits is small for all types but int32: one clamp before rounding.
template <typename T>
void quantize_small(const float* in, T* out, std::size_t n, const Parameters& p) {
    const float inverse = 1.0F / p.scale;
    const float low = static_cast<float>(p.min - p.zero_point), high = static_cast<float>(p.max - p.zero_point);
    for (std::size_t i = 0; i < n; ++i) {
        float v = in[i] * inverse;
        v = v == v ? v : 0.0F;  // NaN counts as zero_point, as Arm's vector conversion has it
        v = v < low ? low : v;
        v = v > high ? high : v;
        out[i] = static_cast<T>(static_cast<std::int32_t>(round_half_even(v)) + p.zero_point);
    }
}

// Any limits: |v| may be large, where floats are whole numbers anyway.
template <typename T>
void quantize_wide(const float* in, T* out, std::size_t n, const Parameters& p) {
    constexpr float kWhole = 4194304.0F;            // 2^22
    constexpr float kSaturated = 1099511627776.0F;  // 2^40: beyond any range, whatever the zero point
    const float inverse = 1.0F / p.scale;
    for (std::size_t i = 0; i < n; ++i) {
        float v = in[i] * inverse;
        if (!(v == v)) v = 0.0F;
        if (v > -kWhole && v < kWhole)
            v = round_half_even(v);
        else if (v > -8388608.0F && v < 8388608.0F) {  // 2^22 to 2^23: steps of a half
            const auto whole = static_cast<std::int32_t>(v);
            const float rest = v - static_cast<float>(whole);
            v = static_cast<float>(rest != 0.0F && whole % 2 != 0 ? whole + (rest > 0 ? 1 : -1) : whole);
        }
        v = v < -kSaturated ? -kSaturated : v > kSaturated ? kSaturated : v;
        std::int64_t q = static_cast<std::int64_t>(v) + p.zero_point;
        q = q < p.min ? p.min : q > p.max ? p.max : q;
        out[i] = static_cast<T>(q);
    }
}

template <typename T>
void quantize(const Tensor& in, const Tensor& out, const Parameters& p) {
    constexpr std::int64_t kSmall = 1 << 22;
    const std::int64_t low = std::int64_t{p.min} - p.zero_point, high = std::int64_t{p.max} - p.zero_point;
    if (low >= -kSmall && high <= kSmall && low <= kSmall && high >= -kSmall)
        quantize_small(in.as<const float>(), out.as<T>(), in.numel(), p);
    else
        quantize_wide(in.as<const float>(), out.as<T>(), in.numel(), p);
}

template <typename T>
void dequantize(const Tensor& in, const Tensor& out, const Parameters& p) {
    const T* const from = in.as<const T>();
    float* const to = out.as<float>();
    const std::size_t n = in.numel();
    if constexpr (sizeof(T) < 4) {
        if (p.zero_point > -(1 << 30) && p.zero_point < 1 << 30) {
            for (std::size_t i = 0; i < n; ++i)
                to[i] = static_cast<float>(std::int32_t{from[i]} - p.zero_point) * p.scale;
            return;
        }
    }
    for (std::size_t i = 0; i < n; ++i) to[i] = static_cast<float>(std::int64_t{from[i]} - p.zero_point) * p.scale;
}

// Input and output of equal shape and order; elements are then taken as they lie.
Result<void> match_shapes(const Arguments& args, const Tensor& in, Tensor& out) {
    TRY(args.resize(out, in.shape()));
    for (std::size_t d = 0; d < in.rank; ++d)
        if (in.dim_order[d] != out.dim_order[d])
            return args.error(ErrorCode::InvalidArgument, "{}: input and output have different orders of dimensions");
    return {};
}

Result<void> quantize_any(Arguments& args, bool by_tensors) {
    TRY_ASSIGN(const Tensor* const in, args.tensor(0));
    TRY_ASSIGN(Tensor* const out, args.out(6));
    if (in->type != ScalarType::Float32)
        return args.error(ErrorCode::InvalidType, "{}: the input must be float32, is {}", scalar_name(in->type));
    TRY_ASSIGN(const Parameters p, read_parameters(args, by_tensors, out->type));
    TRY(match_shapes(args, *in, *out));
    switch (out->type) {
        case ScalarType::Int8:
            quantize<std::int8_t>(*in, *out, p);
            break;
        case ScalarType::UInt8:
            quantize<std::uint8_t>(*in, *out, p);
            break;
        case ScalarType::Int16:
            quantize<std::int16_t>(*in, *out, p);
            break;
        case ScalarType::UInt16:
            quantize<std::uint16_t>(*in, *out, p);
            break;
        default:
            quantize<std::int32_t>(*in, *out, p);
            break;
    }
    return {};
}

enum class Form : std::uint8_t { Numbers, Tensors, CortexM };

Result<void> dequantize_any(Arguments& args, Form form) {
    const std::size_t out_arg = form == Form::CortexM ? 6 : 7;
    TRY_ASSIGN(const Tensor* const in, args.tensor(0));
    TRY_ASSIGN(Tensor* const out, args.out(out_arg));
    if (out->type != ScalarType::Float32)
        return args.error(ErrorCode::InvalidType, "{}: the output must be float32, is {}", scalar_name(out->type));
    if (form != Form::CortexM && !args.is_null(6)) {
        TRY_ASSIGN(const std::int64_t out_dtype, args.integer(6));
        if (out_dtype != static_cast<std::int64_t>(out->type))
            return args.error(ErrorCode::InvalidType, "{}: out_dtype is {}, the output is {}", out_dtype,
                              scalar_name(out->type));
    }
    TRY_ASSIGN(const Parameters p, read_parameters(args, form == Form::Tensors, in->type));
    if (form == Form::CortexM && (p.zero_point < p.min || p.zero_point > p.max))
        return args.error(ErrorCode::InvalidArgument, "{}: zero_point {} lies outside {}..{}", p.zero_point, p.min,
                          p.max);
    TRY(match_shapes(args, *in, *out));
    switch (in->type) {
        case ScalarType::Int8:
            dequantize<std::int8_t>(*in, *out, p);
            break;
        case ScalarType::UInt8:
            dequantize<std::uint8_t>(*in, *out, p);
            break;
        case ScalarType::Int16:
            dequantize<std::int16_t>(*in, *out, p);
            break;
        case ScalarType::UInt16:
            dequantize<std::uint16_t>(*in, *out, p);
            break;
        default:
            dequantize<std::int32_t>(*in, *out, p);
            break;
    }
    return {};
}

}  // namespace

Result<void> quantize_per_tensor(Arguments& args) {
    return quantize_any(args, false);
}
Result<void> quantize_per_tensor_by_tensors(Arguments& args) {
    return quantize_any(args, true);
}
Result<void> dequantize_per_tensor(Arguments& args) {
    return dequantize_any(args, Form::Numbers);
}
Result<void> dequantize_per_tensor_by_tensors(Arguments& args) {
    return dequantize_any(args, Form::Tensors);
}
Result<void> cortex_m_dequantize_per_tensor(Arguments& args) {
    return dequantize_any(args, Form::CortexM);
}

}  // namespace talpa::runtime::operators
