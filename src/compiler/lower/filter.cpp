#include "compiler/lower/filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "compiler/lower/rescale.h"

namespace talpa::compiler {
namespace {

std::int64_t stored(const Value& v, std::size_t i) {
    const std::uint8_t* p = v.constant->data() + i * dtype_size(v.stored_type());
    const auto as = [&]<typename T>(T value) {
        std::memcpy(&value, p, sizeof value);
        return static_cast<std::int64_t>(value);
    };
    switch (v.stored_type()) {
        case DType::Int8:
            return as(std::int8_t{});
        case DType::UInt8:
            return as(std::uint8_t{});
        case DType::Int16:
            return as(std::int16_t{});
        case DType::Int32:
            return as(std::int32_t{});
        default:
            return as(std::int64_t{});
    }
}

double scale_at(const Quantization& q, std::size_t channel) {
    return q.scales.size() == 1 ? q.scales[0] : q.scales[channel];
}

// The bias as the real number that it stands for; a stored one without a scale is in the operator's own unit.
double real_bias(const Value& v, std::size_t channel, double unit) {
    if (v.stored_type() == DType::Float32) {
        float real = 0;
        std::memcpy(&real, v.constant->data() + channel * sizeof real, sizeof real);
        return double{real};
    }
    const auto number = static_cast<double>(stored(v, channel));
    return number * (v.quantization ? scale_at(*v.quantization, channel) : unit);
}

// The bias in units of input scale times weight scale.
std::int64_t bias_at(const Value& v, std::size_t channel, double unit) {
    if (v.stored_type() == DType::Float32) {
        float real = 0;
        std::memcpy(&real, v.constant->data() + channel * sizeof real, sizeof real);
        return std::llrint(double{real} / unit);
    }
    const std::int64_t number = stored(v, channel);
    if (!v.quantization) return number;
    const double scale = scale_at(*v.quantization, channel);
    // Scales that differ by rounding only are the same scale.
    if (std::abs(scale - unit) <= 1e-5 * unit) return number;
    return std::llrint(static_cast<double>(number) * scale / unit);
}

}  // namespace

std::optional<std::string> filter_obstacle(const Graph& graph, ValueId input, ValueId weight, ValueId bias,
                                           ValueId result) {
    const Value& w = graph[weight];
    if (!w.is_constant()) return "its weights are computed at run time";
    if (!w.quantization || (w.stored_type() != DType::Int8 && w.stored_type() != DType::UInt8))
        return fmt::format("its weights are {}, only int8 and uint8 are possible", dtype_name(w.stored_type()));
    if (!w.quantization->per_tensor() && w.quantization->axis != 0)
        return "its weights are quantized along another dimension than the output channel";
    if (bias != kNoValue && !graph[bias].is_constant()) return "its bias is computed at run time";
    if (bias != kNoValue && graph[bias].stored_type() == DType::Bool) return "its bias is of type bool";
    const std::size_t channels = static_cast<std::size_t>(w.shape[0]);
    const std::size_t each = channels == 0 ? 0 : static_cast<std::size_t>(element_count(w.shape)) / channels;
    const std::vector<std::int16_t> weights = plain_weights(w);
    for (std::size_t c = 0; c < channels; ++c) {
        std::int64_t sum = 0;
        for (std::size_t i = 0; i < each; ++i) sum += std::abs(int{weights[c * each + i]});
        if (sum > kMostWeightSum)
            return fmt::format("the weights of channel {} add up to {}, at most {} is possible", c, sum,
                               kMostWeightSum);
        const double unit = graph[input].quantization->scales[0] * scale_at(*w.quantization, c);
        constexpr double kMostBias = 0x1p39;  // records have 40 bits for it
        if (bias != kNoValue && !(std::abs(real_bias(graph[bias], c, unit) / unit) < kMostBias))
            return fmt::format("the bias of channel {} is {:g} in steps of {:g}, more than 40 bits hold", c,
                               real_bias(graph[bias], c, unit), unit);
    }
    (void)result;
    return std::nullopt;
}

std::vector<std::int16_t> plain_weights(const Value& w) {
    const auto count = static_cast<std::size_t>(element_count(w.shape));
    const std::size_t channels = w.shape.empty() ? 1 : static_cast<std::size_t>(w.shape[0]);
    const std::size_t each = channels == 0 ? 1 : count / channels;
    const Quantization& q = *w.quantization;
    std::vector<std::int16_t> out(count);
    for (std::size_t i = 0; i < count; ++i) {
        const std::int32_t zero = q.zero_points.size() == 1 ? q.zero_points[0] : q.zero_points[i / each];
        out[i] = static_cast<std::int16_t>(stored(w, i) - zero);
    }
    return out;
}

std::vector<ScaleRecord> scale_records(const Graph& graph, ValueId input, ValueId weight, ValueId bias, ValueId result,
                                       bool fully_connected) {
    const Value& w = graph[weight];
    const double in = graph[input].quantization->scales[0], out = graph[result].quantization->scales[0];
    const bool unsigned_input = graph[input].stored_type() == DType::UInt8;
    const bool wide = graph[input].stored_type() == DType::Int16;
    std::vector<ScaleRecord> records(static_cast<std::size_t>(w.shape[0]));
    for (std::size_t c = 0; c < records.size(); ++c) {
        const double weight_scale = scale_at(*w.quantization, c);
        double unit = in * weight_scale;
        // LiteRT multiplies these in float32 first (section 5.3).
        if (graph.arithmetic == Arithmetic::TfLite && (unsigned_input || fully_connected))
            unit = double{static_cast<float>(in) * static_cast<float>(weight_scale)};
        npu::Scale s = to_scale(unit / out, graph.arithmetic);
        if (graph.arithmetic == Arithmetic::TfLite && wide && bias != kNoValue &&
            graph[bias].stored_type() == DType::Int64) {
            // A reduced multiplier of 16 bits (section 5.2).
            s.multiplier = s.multiplier >= 32767u * 65536u ? 32767 : (s.multiplier + 0x8000) >> 16;
            s.shift = static_cast<std::uint8_t>(std::max(16, int{s.shift}) - 16);
        }
        records[c] = {bias == kNoValue ? 0 : bias_at(graph[bias], c, in * weight_scale), s.multiplier, s.shift};
    }
    return records;
}

}  // namespace talpa::compiler
