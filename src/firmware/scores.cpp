#include "firmware/scores.h"

#include <bit>

namespace talpa::firmware {

// e^x = 2^n * e^r with |r| <= ln 2 / 2; ln 2 in two parts, so that r keeps its bits; e^r by its Taylor series, whose
// next term is below 2^-26.
float exponential(float x) {
    if (x != x) return x;
    if (x > 88.7f) return std::bit_cast<float>(0x7F800000u);
    if (x < -87.0f) return 0;
    const float scaled = x * 1.44269504f;
    const auto n = static_cast<std::int32_t>(scaled + (scaled >= 0 ? 0.5f : -0.5f));
    const auto fn = static_cast<float>(n);
    const float r = (x - fn * 0.693359375f) + fn * 2.12194440e-4f;
    float p = 1.0f / 5040;
    p = p * r + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1;
    p = p * r + 1;
    // In two steps: 2^128 alone is no float.
    const auto power = [](std::int32_t e) { return std::bit_cast<float>(static_cast<std::uint32_t>(e + 127) << 23); };
    return p * power(n / 2) * power(n - n / 2);
}

std::int64_t integer_element(const runtime::Tensor& t, std::size_t i) {
    using runtime::ScalarType;
    switch (t.type) {
        case ScalarType::Int8:
            return t.as<const std::int8_t>()[i];
        case ScalarType::UInt8:
            return t.as<const std::uint8_t>()[i];
        case ScalarType::Int16:
            return t.as<const std::int16_t>()[i];
        case ScalarType::Int32:
            return t.as<const std::int32_t>()[i];
        case ScalarType::Int64:
            return t.as<const std::int64_t>()[i];
        default:
            return 0;
    }
}

float element(const runtime::Tensor& t, std::size_t i, OutputScale s) {
    if (t.type == runtime::ScalarType::Float32) return t.as<const float>()[i];
    const std::int64_t steps = integer_element(t, i) - (s.scale == 0 ? 0 : s.zero_point);
    // In halves where they are needed, for the M33 would bring a library to convert 64 bits; the sum is off by a unit
    // in the last place at most.
    const auto low = static_cast<std::int32_t>(steps);
    const float value = low == steps ? static_cast<float>(low)
                                     : static_cast<float>(static_cast<std::int32_t>(steps >> 32)) * 4294967296.0f +
                                           static_cast<float>(static_cast<std::uint32_t>(steps));
    return s.scale == 0 ? value : value * s.scale;
}

std::size_t best_scores(const runtime::Tensor& tensor, OutputScale scale, std::span<Score> top) {
    const std::size_t n = tensor.numel();
    std::size_t kept = 0;
    float sum = 0;
    bool negative = false;
    for (std::size_t i = 0; i < n; ++i) {
        const float v = element(tensor, i, scale);
        sum += v;
        negative = negative || v < 0;
        std::size_t at = kept;
        while (at > 0 && v > top[at - 1].logit) --at;
        if (at == top.size()) continue;
        if (kept < top.size()) ++kept;
        for (std::size_t j = kept - 1; j > at; --j) top[j] = top[j - 1];
        top[at] = {static_cast<std::uint32_t>(i), v, 0};
    }
    if (kept == 0) return 0;
    if (!negative && sum > 0.99f && sum < 1.01f) {
        for (std::size_t i = 0; i < kept; ++i) top[i].probability = top[i].logit;
        return kept;
    }
    float total = 0;
    for (std::size_t i = 0; i < n; ++i) total += exponential(element(tensor, i, scale) - top[0].logit);
    for (std::size_t i = 0; i < kept; ++i) top[i].probability = exponential(top[i].logit - top[0].logit) / total;
    return kept;
}

}  // namespace talpa::firmware
