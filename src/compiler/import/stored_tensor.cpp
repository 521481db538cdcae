#include "compiler/import/stored_tensor.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>

#include "compiler/graph/fold.h"
#include "compiler/graph/infer.h"

namespace talpa::compiler::import {
namespace {

using host::failure;
using host::Result;

struct RawFacts {
    RawType type;
    const char* name;
    std::size_t size;
    DType becomes;
};
constexpr std::array kRaw = std::to_array<RawFacts>({
    {RawType::UInt8, "uint8", 1, DType::UInt8},
    {RawType::Int8, "int8", 1, DType::Int8},
    {RawType::UInt16, "uint16", 2, DType::Int32},
    {RawType::Int16, "int16", 2, DType::Int16},
    {RawType::UInt32, "uint32", 4, DType::Int64},
    {RawType::Int32, "int32", 4, DType::Int32},
    {RawType::UInt64, "uint64", 8, DType::Int64},
    {RawType::Int64, "int64", 8, DType::Int64},
    {RawType::Bool, "bool", 1, DType::Bool},
    {RawType::Float16, "float16", 2, DType::Float32},
    {RawType::BFloat16, "bfloat16", 2, DType::Float32},
    {RawType::Float32, "float32", 4, DType::Float32},
    {RawType::Float64, "float64", 8, DType::Float32},
});
const RawFacts& facts(RawType type) {
    return kRaw[static_cast<std::size_t>(type)];
}

/// Element by element: `convert` from the stored form to the graph's.
template <typename From, typename To, typename F>
Bytes converted(const Bytes& in, F convert) {
    const std::size_t count = in.size() / sizeof(From);
    Bytes out(count * sizeof(To));
    for (std::size_t i = 0; i < count; ++i) {
        From from;
        std::memcpy(&from, in.data() + i * sizeof(From), sizeof(From));
        const To to = convert(from);
        std::memcpy(out.data() + i * sizeof(To), &to, sizeof(To));
    }
    return out;
}

Result<void> check_finite(const Bytes& bytes, Finite finite) {
    for (std::size_t i = 0; i * 4 < bytes.size(); ++i) {
        const auto v = load_le<float>(bytes.data() + i * 4);
        if (std::isfinite(v) || (std::isinf(v) && finite == Finite::NoNan)) continue;
        return failure(ErrorCode::InvalidProgram, "element {} is {}", i, std::isnan(v) ? "not a number" : "infinite");
    }
    return {};
}

/// Largest element index that the view reaches, relative to the storage's begin.
Result<std::uint64_t> reach(const StoredTensor& t, std::span<const std::int64_t> strides) {
    std::uint64_t last = static_cast<std::uint64_t>(t.offset);
    for (std::size_t d = 0; d < t.sizes.size(); ++d) {
        if (strides[d] < 0) return failure(ErrorCode::InvalidProgram, "stride {} is negative", strides[d]);
        const auto step =
            checked_mul(static_cast<std::uint64_t>(t.sizes[d] - 1), static_cast<std::uint64_t>(strides[d]));
        const auto sum = step ? checked_add(last, *step) : std::nullopt;
        if (!sum) return failure(ErrorCode::InvalidProgram, "sizes times strides overflow");
        last = *sum;
    }
    return last;
}

}  // namespace

std::size_t raw_size(RawType type) {
    return facts(type).size;
}
const char* raw_name(RawType type) {
    return facts(type).name;
}

float half_to_float(std::uint16_t bits) {
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
    const std::uint32_t exponent = (bits >> 10) & 31u, fraction = bits & 1023u;
    if (exponent == 0) {
        const float small = std::ldexp(static_cast<float>(fraction), -24);
        return sign != 0 ? -small : small;
    }
    const std::uint32_t wide = exponent == 31 ? 255u : exponent + 112u;
    return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

Result<std::int64_t> checked_count(const Shape& sizes) {
    constexpr std::int64_t kMost = std::int64_t{1} << 40;
    if (sizes.size() > 8) return failure(ErrorCode::NotSupported, "rank {}, at most 8 is supported", sizes.size());
    std::int64_t count = 1;
    bool empty = false;
    for (const auto size : sizes) {
        if (size < 0) return failure(ErrorCode::InvalidProgram, "a dimension of {} elements", size);
        empty |= size == 0;
        const auto more = checked_mul(count, std::max<std::int64_t>(size, 1));
        if (!more || *more > kMost)
            return failure(ErrorCode::InvalidProgram, "shape {} has too many elements", shape_text(sizes));
        count = *more;
    }
    return empty ? 0 : count;
}

Result<Value> load_tensor(const std::string& name, const StoredTensor& t, Finite finite) {
    const RawFacts& raw = facts(t.type);
    TRY_ASSIGN(const auto count, checked_count(t.sizes));
    const auto strides = t.strides.empty() ? row_major_strides(t.sizes) : t.strides;
    if (strides.size() != t.sizes.size())
        return failure(ErrorCode::InvalidProgram, "{} sizes and {} strides", t.sizes.size(), strides.size());
    if (t.offset < 0) return failure(ErrorCode::InvalidProgram, "offset {} is negative", t.offset);
    Bytes bytes;
    if (count > 0) {
        TRY_ASSIGN(const auto last, reach(t, strides));
        if (last >= t.storage.size() / raw.size)
            return failure(ErrorCode::InvalidProgram, "shape {} reaches element {} of a storage of {} bytes ({})",
                           shape_text(t.sizes), last, t.storage.size(), raw.name);
        // A few bytes can be expanded to terabytes by strides of 0 (model-formats, section 0).
        if (static_cast<std::uint64_t>(count) * raw.size > 16 * t.storage.size() + (1u << 20))
            return failure(ErrorCode::OutOfResources, "shape {} expands a storage of {} bytes more than 16 times",
                           shape_text(t.sizes), t.storage.size());
        bytes = gather_strided(t.storage, raw.size, t.sizes, strides, t.offset);
    }
    switch (t.type) {
        case RawType::Float16:
            bytes = converted<std::uint16_t, float>(bytes, half_to_float);
            break;
        case RawType::BFloat16:
            bytes = converted<std::uint16_t, float>(
                bytes, [](std::uint16_t v) { return std::bit_cast<float>(static_cast<std::uint32_t>(v) << 16); });
            break;
        case RawType::Float64:
            bytes = converted<double, float>(bytes, [](double v) { return static_cast<float>(v); });
            break;
        case RawType::UInt16:
            bytes = converted<std::uint16_t, std::int32_t>(bytes, [](std::uint16_t v) { return v; });
            break;
        case RawType::UInt32:
            bytes = converted<std::uint32_t, std::int64_t>(bytes, [](std::uint32_t v) { return v; });
            break;
        case RawType::UInt64:
            for (std::size_t i = 7; i < bytes.size(); i += 8)
                if (bytes[i] >= 0x80) return failure(ErrorCode::NotSupported, "numbers above 2^63");
            break;
        default:
            break;
    }
    if (raw.becomes == DType::Float32 && finite != Finite::Any) TRY(check_finite(bytes, finite));
    return Value{.name = name,
                 .shape = t.sizes,
                 .type = raw.becomes,
                 .constant = std::make_shared<const Bytes>(std::move(bytes))};
}

}  // namespace talpa::compiler::import
