#include "inspect/tensor_difference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace talpa::inspect {
namespace {

using runtime::ScalarType;

double from_half(std::uint16_t bits) {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const double sign = bits >> 15 != 0 ? -1 : 1;
    if (exponent == 31)
        return fraction == 0 ? sign * std::numeric_limits<double>::infinity()
                             : std::numeric_limits<double>::quiet_NaN();
    return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
}

}  // namespace

double element_as_number(ScalarType type, const std::uint8_t* p) {
    switch (type) {
        case ScalarType::Float32:
            return double{load_le<float>(p)};
        case ScalarType::Float64:
            return load_le<double>(p);
        case ScalarType::Float16:
            return from_half(load_le<std::uint16_t>(p));
        case ScalarType::BFloat16:
            return double{std::bit_cast<float>(std::uint32_t{load_le<std::uint16_t>(p)} << 16)};
        case ScalarType::Int8:
        case ScalarType::QInt8:
            return load_le<std::int8_t>(p);
        case ScalarType::Int16:
            return load_le<std::int16_t>(p);
        case ScalarType::Int32:
        case ScalarType::QInt32:
            return load_le<std::int32_t>(p);
        case ScalarType::Int64:
            return static_cast<double>(load_le<std::int64_t>(p));
        default:
            break;
    }
    switch (scalar_size(type)) {
        case 1:
            return *p;
        case 2:
            return load_le<std::uint16_t>(p);
        case 4:
            return load_le<std::uint32_t>(p);
        default:
            return static_cast<double>(load_le<std::uint64_t>(p));
    }
}

std::optional<TensorDifference> difference(ScalarType type, Bytes a, Bytes b) {
    const std::size_t size = scalar_size(type);
    if (std::ranges::equal(a, b)) return std::nullopt;
    TensorDifference d{.elements = a.size() / size};
    for (std::uint64_t i = 0; i < d.elements; ++i) {
        const std::uint8_t *p = a.data() + i * size, *q = b.data() + i * size;
        if (std::memcmp(p, q, size) == 0) continue;
        const double x = element_as_number(type, p), y = element_as_number(type, q);
        if (d.differing++ == 0) d.first = i, d.first_a = x, d.first_b = y;
        const double distance = std::isnan(x) && std::isnan(y) ? 0 : std::abs(x - y);
        d.max_abs = std::max(d.max_abs, std::isnan(distance) ? std::numeric_limits<double>::infinity() : distance);
    }
    return d;
}

}  // namespace talpa::inspect
