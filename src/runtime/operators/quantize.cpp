#include "runtime/operators/quantize.h"

#include <limits>

#include "runtime/operators/quantize_m33.h"

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
Result<void> read_scale(Arguments& args, bool by_tensors, float& scale, std::int64_t& zero_point) {
    if (!by_tensors) {
        TRY_ASSIGN(scale, args.number_as_float(1));
        TRY_ASSIGN(zero_point, args.integer(2));
        return {};
    }
    TRY_ASSIGN(const Tensor* const s, args.tensor(1));
    TRY_ASSIGN(const Tensor* const z, args.tensor(2));
    if (s->numel() != 1 || z->numel() != 1 || s->type != ScalarType::Float64 || z->type != ScalarType::Int64)
        return args.error(ErrorCode::InvalidType,
                          TALPA_SENTENCE("{}: scale and zero_point must be one float64 and one int64, are {} and {}"),
                          scalar_name(s->type), scalar_name(z->type));
    scale = static_cast<float>(*s->as<double>());
    zero_point = *z->as<std::int64_t>();
    return {};
}

// Arguments 1 to 5 for a quantized tensor of type `quantized`.
Result<Parameters> read_parameters(Arguments& args, bool by_tensors, ScalarType quantized) {
    Parameters p;
    std::int64_t zero_point = 0;
    TRY(read_scale(args, by_tensors, p.scale, zero_point));
    TRY_ASSIGN(const std::int64_t min, args.integer(3));
    TRY_ASSIGN(const std::int64_t max, args.integer(4));
    TRY_ASSIGN(const std::int64_t dtype, args.integer(5));
    if (dtype != static_cast<std::int64_t>(quantized))
        return args.error(ErrorCode::InvalidType, TALPA_SENTENCE("{}: dtype is {}, the quantized tensor is {}"), dtype,
                          scalar_name(quantized));
    const IntegerRange range = range_of(quantized);
    if (range.max == 0)
        return args.error(ErrorCode::InvalidType, TALPA_SENTENCE("{}: the quantized tensor is {}"),
                          scalar_name(quantized));
    if (min > max || min < range.min || max > range.max)
        return args.error(ErrorCode::InvalidArgument, TALPA_SENTENCE("{}: the range {}..{} does not fit {}"), min, max,
                          scalar_name(quantized));
    if (zero_point < INT32_MIN || zero_point > INT32_MAX)
        return args.error(ErrorCode::InvalidArgument, TALPA_SENTENCE("{}: zero_point is {}"), zero_point);
    if (!(p.scale > 0) || p.scale > std::numeric_limits<float>::max())
        return args.error(ErrorCode::InvalidArgument, TALPA_SENTENCE("{}: the scale is no positive number"));
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

#if defined(__ARM_FEATURE_DSP) && (__ARM_FP & 4) != 0

// 8 bits with the whole range of the type, which is what programs have. False: not this case.
bool quantize_fast(const Tensor& in, const Tensor& out, const Parameters& p) {
    constexpr std::int32_t kSmall = 1 << 22;
    const IntegerRange whole = range_of(out.type);
    if (scalar_size(out.type) != 1 || p.min != whole.min || p.max != whole.max) return false;
    if (p.zero_point < -kSmall || p.zero_point > kSmall) return false;
    const float inverse = 1.0F / p.scale;
    (out.type == ScalarType::Int8 ? m33::quantize_int8 : m33::quantize_uint8)(in.as<const float>(), out.data,
                                                                              in.numel(), inverse, p.zero_point);
    return true;
}

bool dequantize_fast(const Tensor& in, const Tensor& out, const Parameters& p) {
    constexpr std::int32_t kSmall = 1 << 29;
    if (scalar_size(in.type) != 1 || p.zero_point < -kSmall || p.zero_point > kSmall) return false;
    (in.type == ScalarType::Int8 ? m33::dequantize_int8 : m33::dequantize_uint8)(in.data, out.as<float>(), in.numel(),
                                                                                 p.scale, p.zero_point);
    return true;
}

#else

// The difference to the zero point of the quantized limits is small for all types but int32: one clamp before rounding.
// T is as wide as an element; whether it is signed makes no difference to a store.
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

bool quantize_fast(const Tensor& in, const Tensor& out, const Parameters& p) {
    constexpr std::int64_t kSmall = 1 << 22;
    const std::int64_t low = std::int64_t{p.min} - p.zero_point, high = std::int64_t{p.max} - p.zero_point;
    const std::size_t width = scalar_size(out.type);
    if (width > 2 || low < -kSmall || high > kSmall || low > kSmall || high < -kSmall) return false;
    if (width == 1)
        quantize_small(in.as<const float>(), out.as<std::uint8_t>(), in.numel(), p);
    else
        quantize_small(in.as<const float>(), out.as<std::uint16_t>(), in.numel(), p);
    return true;
}

bool dequantize_fast(const Tensor& in, const Tensor& out, const Parameters& p) {
    if (in.type != ScalarType::Int8 || p.zero_point < -(1 << 30) || p.zero_point > 1 << 30) return false;
    float* const to = out.as<float>();
    for (std::size_t i = 0, n = in.numel(); i < n; ++i)
        to[i] = static_cast<float>(in.as<const std::int8_t>()[i] - p.zero_point) * p.scale;
    return true;
}

#endif

// r = half-to-even of any float, saturated at +-2^40, which is beyond every range whatever the zero point. Large floats
// are whole numbers; they are taken apart by hand, for the M33 would bring a library to convert 64-bit integers.
std::int64_t round_to_integer(float v) {
    constexpr float kHalves = 4194304.0F;           // 2^22: from here the steps are a half …
    constexpr float kWhole = 8388608.0F;            // … and from 2^23 on there are only whole numbers
    constexpr float kSaturated = 1099511627776.0F;  // 2^40
    if (!(v == v)) return 0;
    if (v > -kHalves && v < kHalves) return static_cast<std::int32_t>(round_half_even(v));
    if (v > -kWhole && v < kWhole) {
        const auto whole = static_cast<std::int32_t>(v);
        const bool tie = v != static_cast<float>(whole);
        return tie && whole % 2 != 0 ? whole + (v > 0 ? 1 : -1) : whole;
    }
    v = v < -kSaturated ? -kSaturated : v > kSaturated ? kSaturated : v;
    const auto high = static_cast<std::int32_t>(v * (1.0F / 65536.0F));
    const auto low = static_cast<std::int32_t>(v - static_cast<float>(high) * 65536.0F);
    return std::int64_t{high} * 65536 + low;
}

void store(std::uint8_t* at, std::size_t width, std::int32_t q) {
    if (width == 1) *at = static_cast<std::uint8_t>(q);
    if (width == 2) *reinterpret_cast<std::uint16_t*>(at) = static_cast<std::uint16_t>(q);
    if (width == 4) *reinterpret_cast<std::int32_t*>(at) = q;
}

// Any limits.
void quantize_wide(const Tensor& in, const Tensor& out, const Parameters& p) {
    const float inverse = 1.0F / p.scale;
    const std::size_t width = scalar_size(out.type), n = in.numel();
    for (std::size_t i = 0; i < n; ++i) {
        std::int64_t q = round_to_integer(in.as<const float>()[i] * inverse) + p.zero_point;
        q = q < p.min ? p.min : q > p.max ? p.max : q;
        store(out.data + i * width, width, static_cast<std::int32_t>(q));
    }
}

void quantize(const Tensor& in, const Tensor& out, const Parameters& p) {
    if (!quantize_fast(in, out, p)) quantize_wide(in, out, p);
}

std::int32_t load(const Tensor& in, std::size_t i) {
    switch (in.type) {
        case ScalarType::Int8:
            return in.as<const std::int8_t>()[i];
        case ScalarType::UInt8:
            return in.as<const std::uint8_t>()[i];
        case ScalarType::Int16:
            return in.as<const std::int16_t>()[i];
        case ScalarType::UInt16:
            return in.as<const std::uint16_t>()[i];
        default:
            return in.as<const std::int32_t>()[i];
    }
}

void dequantize(const Tensor& in, const Tensor& out, const Parameters& p) {
    if (dequantize_fast(in, out, p)) return;
    float* const to = out.as<float>();
    const std::size_t n = in.numel();
    for (std::size_t i = 0; i < n; ++i) {
        // The difference has 33 bits: its magnitude is rounded to a float, once, and gets its sign back.
        const std::int64_t d = std::int64_t{load(in, i)} - p.zero_point;
        const auto magnitude = static_cast<float>(static_cast<std::uint32_t>(d < 0 ? -d : d));
        to[i] = (d < 0 ? -magnitude : magnitude) * p.scale;
    }
}

// Input and output of equal shape and order; elements are then taken as they lie.
Result<void> match_shapes(const Arguments& args, const Tensor& in, Tensor& out) {
    TRY(args.resize(out, in.shape()));
    for (std::size_t d = 0; d < in.rank; ++d)
        if (in.dim_order[d] != out.dim_order[d])
            return args.error(ErrorCode::InvalidArgument,
                              TALPA_SENTENCE("{}: input and output have different orders of dimensions"));
    return {};
}

Result<void> quantize_any(Arguments& args, bool by_tensors) {
    TRY_ASSIGN(const Tensor* const in, args.tensor(0));
    TRY_ASSIGN(Tensor* const out, args.out(6));
    if (in->type != ScalarType::Float32)
        return args.error(ErrorCode::InvalidType, TALPA_SENTENCE("{}: the input must be float32, is {}"),
                          scalar_name(in->type));
    TRY_ASSIGN(const Parameters p, read_parameters(args, by_tensors, out->type));
    TRY(match_shapes(args, *in, *out));
    quantize(*in, *out, p);
    return {};
}

enum class Form : std::uint8_t { Numbers, Tensors, CortexM };

Result<void> dequantize_any(Arguments& args, Form form) {
    const std::size_t out_arg = form == Form::CortexM ? 6 : 7;
    TRY_ASSIGN(const Tensor* const in, args.tensor(0));
    TRY_ASSIGN(Tensor* const out, args.out(out_arg));
    if (out->type != ScalarType::Float32)
        return args.error(ErrorCode::InvalidType, TALPA_SENTENCE("{}: the output must be float32, is {}"),
                          scalar_name(out->type));
    if (form != Form::CortexM && !args.is_null(6)) {
        TRY_ASSIGN(const std::int64_t out_dtype, args.integer(6));
        if (out_dtype != static_cast<std::int64_t>(out->type))
            return args.error(ErrorCode::InvalidType, TALPA_SENTENCE("{}: out_dtype is {}, the output is {}"),
                              out_dtype, scalar_name(out->type));
    }
    TRY_ASSIGN(const Parameters p, read_parameters(args, form == Form::Tensors, in->type));
    if (form == Form::CortexM && (p.zero_point < p.min || p.zero_point > p.max))
        return args.error(ErrorCode::InvalidArgument, TALPA_SENTENCE("{}: zero_point {} lies outside {}..{}"),
                          p.zero_point, p.min, p.max);
    TRY(match_shapes(args, *in, *out));
    dequantize(*in, *out, p);
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
