#include "compiler/graph/constant.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace talpa::compiler {
namespace {

template <typename T>
Value constant_of(DType type, std::string name, Shape shape, std::span<const T> numbers) {
    auto bytes = std::make_shared<Bytes>(numbers.size_bytes());
    if (!numbers.empty()) std::memcpy(bytes->data(), numbers.data(), numbers.size_bytes());
    return {.name = std::move(name), .shape = std::move(shape), .type = type, .constant = std::move(bytes)};
}

template <typename T, typename Out>
void widen(const Bytes& bytes, std::vector<Out>& out) {
    for (std::size_t i = 0; i < out.size(); ++i) {
        T item;
        std::memcpy(&item, bytes.data() + i * sizeof(T), sizeof(T));
        out[i] = static_cast<Out>(item);
    }
}

template <typename Out>
std::vector<Out> widened(const Value& value) {
    std::vector<Out> out(static_cast<std::size_t>(element_count(value.shape)));
    switch (value.stored_type()) {
        case DType::Float32:
            widen<float>(*value.constant, out);
            break;
        case DType::Int8:
            widen<std::int8_t>(*value.constant, out);
            break;
        case DType::UInt8:
        case DType::Bool:
            widen<std::uint8_t>(*value.constant, out);
            break;
        case DType::Int16:
            widen<std::int16_t>(*value.constant, out);
            break;
        case DType::Int32:
            widen<std::int32_t>(*value.constant, out);
            break;
        case DType::Int64:
            widen<std::int64_t>(*value.constant, out);
            break;
    }
    return out;
}

}  // namespace

Value float_constant(std::string name, Shape shape, std::span<const float> numbers) {
    return constant_of(DType::Float32, std::move(name), std::move(shape), numbers);
}

Value int64_constant(std::string name, Shape shape, std::span<const std::int64_t> numbers) {
    return constant_of(DType::Int64, std::move(name), std::move(shape), numbers);
}

std::vector<std::int64_t> stored_integers(const Value& value) {
    return widened<std::int64_t>(value);
}

std::size_t channel_of(const Value& value, std::int64_t index) {
    if (!value.quantization || value.quantization->per_tensor()) return 0;
    const auto axis = static_cast<std::size_t>(value.quantization->axis);
    std::int64_t inner = 1;
    for (std::size_t d = axis + 1; d < value.shape.size(); ++d) inner *= value.shape[d];
    return static_cast<std::size_t>(index / inner % value.shape[axis]);
}

std::vector<float> real_numbers(const Value& value) {
    if (!value.quantization) return widened<float>(value);
    const Quantization& q = *value.quantization;
    std::vector<float> reals = widened<float>(value);
    // As channel_of, but for all of millions of weights.
    std::size_t inner = 1, channels = 1;
    if (!q.per_tensor()) {
        const auto axis = static_cast<std::size_t>(q.axis);
        channels = static_cast<std::size_t>(value.shape[axis]);
        for (std::size_t d = axis + 1; d < value.shape.size(); ++d) inner *= static_cast<std::size_t>(value.shape[d]);
    }
    for (std::size_t i = 0; i < reals.size(); ++i) {
        const std::size_t c = i / inner % channels;
        reals[i] = (reals[i] - static_cast<float>(q.zero_points[c])) * static_cast<float>(q.scales[c]);
    }
    return reals;
}

std::int64_t quantize_number(float x, double scale, std::int32_t zero_point, std::int64_t min, std::int64_t max,
                             bool by_division) {
    const float scaled = by_division ? x / static_cast<float>(scale) : x * static_cast<float>(1.0 / scale);
    const double rounded = std::nearbyint(static_cast<double>(scaled)) + zero_point;
    return static_cast<std::int64_t>(std::clamp(rounded, static_cast<double>(min), static_cast<double>(max)));
}

}  // namespace talpa::compiler
