#include "classifier/ranking.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace talpa::classifier {
namespace {

using runtime::ScalarType;

/// The elements as numbers; nothing when the type is none that scores come in.
std::optional<std::vector<double>> numbers(const Output& output) {
    const std::size_t size = scalar_size(output.type);
    std::vector<double> values(output.bytes.size() / size);
    const std::uint8_t* p = output.bytes.data();
    const auto read = [&]<typename T>() {
        for (double& v : values) v = static_cast<double>(load_le<T>(p)), p += size;
    };
    switch (output.type) {
        case ScalarType::Float32:
            read.operator()<float>();
            return values;
        case ScalarType::Float64:
            read.operator()<double>();
            return values;
        case ScalarType::Int8:
        case ScalarType::QInt8:
            read.operator()<std::int8_t>();
            return values;
        case ScalarType::UInt8:
        case ScalarType::QUInt8:
            read.operator()<std::uint8_t>();
            return values;
        case ScalarType::Int16:
            read.operator()<std::int16_t>();
            return values;
        case ScalarType::Int32:
            read.operator()<std::int32_t>();
            return values;
        default:
            return std::nullopt;
    }
}

bool is_integer(ScalarType type) {
    return type != ScalarType::Float32 && type != ScalarType::Float64;
}

/// Probabilities lie in 0..1 and sum to 1. `step`: of a quantized output, whose every value may be off by half a step.
bool sums_to_one(const std::vector<double>& values, double step) {
    const double tolerance = std::max(1e-3, std::min(0.5, step / 2 * static_cast<double>(values.size())));
    double sum = 0;
    for (const double v : values) {
        if (v < 0 || v > 1 + 1e-6 + step) return false;
        sum += v;
    }
    return std::abs(sum - 1) <= tolerance;
}

void softmax(std::vector<double>& values) {
    const double most = *std::max_element(values.begin(), values.end());
    double sum = 0;
    for (double& v : values) sum += v = std::exp(v - most);
    for (double& v : values) v /= sum;
}

}  // namespace

bool is_classification(const Output& output) {
    std::size_t long_dimensions = 0;
    for (const std::int32_t side : output.shape) long_dimensions += side != 1;
    return long_dimensions == 1 && scalar_size(output.type) > 0 &&
           output.bytes.size() >= 2 * scalar_size(output.type) && numbers({output.type, {}, {}, {}}).has_value();
}

host::Result<Classification> classify(const Output& output, std::size_t count) {
    if (!is_classification(output))
        return host::failure(ErrorCode::InvalidType, "an output of type {} and this shape is not one score per class",
                             runtime::scalar_name(output.type));
    std::vector<double> values = *numbers(output);
    for (std::size_t i = 0; i < values.size(); ++i)
        if (!std::isfinite(values[i]))
            return host::failure(ErrorCode::InvalidProgram, "the score of class {} is {}", i, values[i]);

    Classification result{.top = {}, .classes = values.size()};
    if (is_integer(output.type) && !output.quantization) {
        result.scores = Classification::Scores::Raw;
    } else {
        const Quantization q = output.quantization.value_or(Quantization{});
        const bool quantized = is_integer(output.type);
        if (quantized)
            for (double& v : values) v = q.scale * (v - q.zero_point);
        if (sums_to_one(values, quantized ? q.scale : 0)) {
            result.scores = Classification::Scores::Probabilities;
        } else {
            result.scores = Classification::Scores::Softmax;
            softmax(values);
        }
    }
    std::vector<std::size_t> order(values.size());
    std::iota(order.begin(), order.end(), 0u);
    const std::size_t kept = std::min(count, order.size());
    std::partial_sort(
        order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(),
        [&](std::size_t a, std::size_t b) { return values[a] != values[b] ? values[a] > values[b] : a < b; });
    for (std::size_t i = 0; i < kept; ++i) result.top.push_back({order[i], values[order[i]]});
    return result;
}

}  // namespace talpa::classifier
