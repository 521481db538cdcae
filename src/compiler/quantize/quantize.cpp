#include "compiler/quantize/quantize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>

#include "compiler/floats/executor.h"
#include "compiler/quantize/compare_runs.h"
#include "compiler/quantize/correct.h"
#include "compiler/quantize/equalize.h"
#include "compiler/quantize/policy.h"
#include "compiler/quantize/value_groups.h"

namespace talpa::compiler {

namespace {

/// Values that share one quantization.
ValueGroups group_values(const Graph& graph) {
    ValueGroups groups(graph.values.size());
    for (const auto& node : graph.nodes) {
        if (result_rule(graph, node, 8) != ResultRule::Same) continue;  // of any number of bits
        const std::size_t operands = node.op == Op::Concat ? node.inputs.size() : 1;
        for (std::size_t i = 0; i < operands; ++i) groups.unite(node.inputs[i], node.outputs[0]);
    }
    return groups;
}

constexpr std::array<std::string_view, 3> kActivations{"int8", "int16", "mixed"};

/// By group's representative: the type its values are stored in.
std::vector<DType> choose_types(const Graph& graph, ValueGroups& groups, Activations activations) {
    std::vector<DType> types(graph.values.size(), activations == Activations::Int16 ? DType::Int16 : DType::Int8);
    if (activations != Activations::Mixed) return types;
    for (const auto& node : graph.nodes) {
        if (node.op != Op::Add) continue;
        types[groups.find(node.outputs[0])] = DType::Int16;
        for (const auto id : node.inputs)
            if (!graph[id].is_constant()) types[groups.find(id)] = DType::Int16;
    }
    return types;
}

/// By node, with the types chosen.
std::vector<ResultRule> find_rules(const Graph& graph, ValueGroups& groups, const std::vector<DType>& types) {
    std::vector<ResultRule> rules;
    for (const auto& node : graph.nodes) {
        bool wide = types[groups.find(node.outputs[0])] == DType::Int16;
        for (const auto id : node.inputs) wide = wide || (id != kNoValue && types[groups.find(id)] == DType::Int16);
        rules.push_back(result_rule(graph, node, wide ? 16 : 8));
    }
    return rules;
}

/// Values that get a quantization: computed by, or read by, something that works on integers.
std::vector<char> find_quantized(const Graph& graph, const std::vector<ResultRule>& rules) {
    std::vector<char> wanted(graph.values.size(), 0);
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
        if (rules[n] == ResultRule::Float) continue;
        const auto& node = graph.nodes[n];
        for (std::size_t i = 0; i < node.inputs.size(); ++i)
            if (is_activation(graph, node, i)) wanted[node.inputs[i]] = 1;
        for (const auto id : node.outputs)
            if (graph[id].type == DType::Float32) wanted[id] = 1;
    }
    return wanted;
}

Value stored(const Value& from, const Quantization& q, const std::vector<float>& numbers) {
    Value value{.name = from.name + ".quantized", .shape = from.shape, .type = DType::Float32, .quantization = q};
    auto bytes = std::make_shared<Bytes>(numbers.size() * dtype_size(q.type));
    std::int64_t inner = 1;
    if (q.axis >= 0)
        for (std::size_t i = static_cast<std::size_t>(q.axis) + 1; i < from.shape.size(); ++i) inner *= from.shape[i];
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        const auto c =
            q.axis < 0 ? 0 : static_cast<std::size_t>(static_cast<std::int64_t>(i) / inner) % q.scales.size();
        const double x = std::nearbyint(static_cast<double>(numbers[i]) / q.scales[c]) + q.zero_points[c];
        const auto n = static_cast<std::int64_t>(std::clamp(x, static_cast<double>(q.min), static_cast<double>(q.max)));
        for (std::size_t b = 0; b < dtype_size(q.type); ++b)
            (*bytes)[i * dtype_size(q.type) + b] = static_cast<std::uint8_t>(static_cast<std::uint64_t>(n) >> (8 * b));
    }
    value.constant = std::move(bytes);
    return value;
}

/// Weights and bias of one node.
class WeightQuantizer {
  public:
    WeightQuantizer(Graph& graph, const Calibration& calibration, bool correct, std::vector<std::string>& warnings)
        : graph_(graph), calibration_(calibration), correct_(correct), warnings_(warnings) {}

    host::Result<void> operator()(Node& node) {
        const Value weight = graph_[node.inputs[1]];
        if (!weight.is_constant()) return {};
        TRY_ASSIGN(const auto w, real_values(weight));
        const auto channels = static_cast<std::size_t>(weight.shape[0]);
        const std::size_t each = channels == 0 ? 0 : w.size() / channels;
        std::vector<float> bias(channels, 0.0f);
        const bool has_bias = node.inputs.size() > 2 && node.inputs[2] != kNoValue;
        if (has_bias) {
            TRY_ASSIGN(bias, real_values(graph_[node.inputs[2]]));
        }
        const double in_scale = graph_[node.inputs[0]].quantization->scales[0];

        Quantization q{.type = DType::Int8, .scales = {}, .zero_points = {}, .axis = 0, .min = -127, .max = 127};
        std::size_t zeros = 0;
        for (std::size_t o = 0; o < channels; ++o) {
            double most = 0;
            for (std::size_t k = 0; k < each; ++k)
                most = std::max(most, std::fabs(static_cast<double>(w[o * each + k])));
            if (!std::isfinite(most) || !std::isfinite(bias[o]))
                return host::failure(ErrorCode::InvalidArgument,
                                     "'{}' ({}): weights or bias of output channel {} are infinite or not a number",
                                     node.source.node, weight.name, o);
            if (most == 0) ++zeros;
            double scale = most > 0 ? most / 127 : 1.0 / 127;
            // The bias is stored in steps of in_scale * scale and has to fit 31 bits.
            scale = std::max(scale, std::fabs(static_cast<double>(bias[o])) / (in_scale * 0x1p30));
            q.scales.push_back(static_cast<double>(std::max(static_cast<float>(scale), 1e-30f)));
            q.zero_points.push_back(0);
        }
        if (zeros > 0)
            warnings_.push_back(fmt::format("'{}' ({}): {} of {} output channels have only zero weights",
                                            node.source.node, weight.name, zeros, channels));
        const auto rounded = stored(weight, q, w);
        if (correct_) correct(node, rounded, w, bias);
        node.inputs[1] = graph_.add_value(rounded);
        if (!has_bias && !correct_) return {};

        Quantization b{.type = DType::Int32,
                       .scales = {},
                       .zero_points = std::vector<std::int32_t>(channels, 0),
                       .axis = 0,
                       .min = -0x7FFFFFFF,
                       .max = 0x7FFFFFFF};
        for (const double scale : q.scales) b.scales.push_back(in_scale * scale);
        Value from{.name = weight.name + ".bias", .shape = {weight.shape[0]}};
        if (has_bias) from.name = graph_[node.inputs[2]].name;
        node.inputs.resize(3, kNoValue);
        node.inputs[2] = graph_.add_value(stored(from, b, bias));
        return {};
    }

  private:
    /// Rounding moves each weight a little; times the mean of what it meets that is a constant error of the output.
    void correct(const Node& node, const Value& rounded, const std::vector<float>& w, std::vector<float>& bias) const {
        const auto& means = calibration_.channel_means[node.inputs[0]];
        const auto exact = real_values(rounded);
        if (means.empty() || !exact) return;
        const auto* conv = std::get_if<ConvAttr>(&node.attributes);
        const auto depth = static_cast<std::size_t>(rounded.shape.back());
        const std::size_t per_group = bias.size() / static_cast<std::size_t>(conv != nullptr ? conv->groups : 1);
        const std::size_t each = w.size() / bias.size();
        for (std::size_t o = 0; o < bias.size(); ++o) {
            double error = 0;
            for (std::size_t k = 0; k < each; ++k) {
                const double moved = static_cast<double>((*exact)[o * each + k]) - static_cast<double>(w[o * each + k]);
                error += moved * means[o / per_group * depth + k % depth];
            }
            bias[o] -= static_cast<float>(error);
        }
    }

    Graph& graph_;
    const Calibration& calibration_;
    bool correct_;
    std::vector<std::string>& warnings_;
};

void warn_of_constant_values(const Graph& graph, const Calibration& calibration, std::vector<std::string>& warnings) {
    for (ValueId id = 0; id < graph.values.size(); ++id) {
        const auto& h = calibration.values[id];
        if (h.empty() || graph[id].is_constant() || element_count(graph[id].shape) <= 1) continue;
        if (h.least() == h.greatest())
            warnings.push_back(fmt::format("'{}' was {} everywhere in calibration: its quantization is a guess",
                                           graph[id].name, h.least()));
    }
}

}  // namespace

std::optional<Activations> find_activations(std::string_view name) {
    const auto* at = std::ranges::find(kActivations, name);
    if (at == kActivations.end()) return std::nullopt;
    return static_cast<Activations>(at - kActivations.begin());
}

host::Result<Quantized> apply_calibration(const Graph& source, const Calibration& calibration, Observer observer,
                                          const QuantizeOptions& options) {
    Quantized result{.graph = source, .observer = observer, .warnings = {}};
    auto& graph = result.graph;
    auto groups = group_values(graph);
    const auto types = choose_types(graph, groups, options.activations);
    const auto rules = find_rules(graph, groups, types);
    const auto wanted = find_quantized(graph, rules);

    std::map<ValueId, Histogram> histograms;
    std::map<ValueId, Quantization> chosen;
    for (ValueId id = 0; id < source.values.size(); ++id) {
        if (!wanted[id]) continue;
        if (calibration.values[id].not_finite() > 0)
            return host::failure(ErrorCode::InvalidArgument,
                                 "'{}' had {} numbers in calibration that are infinite or not a number", graph[id].name,
                                 calibration.values[id].not_finite());
        auto& histogram = histograms[groups.find(id)];
        if (graph[id].is_constant()) {
            TRY_ASSIGN(const auto numbers, real_values(graph[id]));
            histogram.add(numbers);
        } else {
            histogram.add(calibration.values[id]);
        }
    }
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
        const auto& node = graph.nodes[n];
        const auto group = groups.find(node.outputs[0]);
        if (rules[n] == ResultRule::Unit) chosen[group] = quantization_for({0, 255.0 / 256}, types[group]);
        if (rules[n] == ResultRule::Signed) chosen[group] = quantization_for({-1, 127.0 / 128}, types[group]);
        if (node.op == Op::Pad && node.as<PadAttr>().mode == PadAttr::Mode::Constant) {
            const float value = static_cast<float>(node.as<PadAttr>().value);
            histograms[group].add(std::span(&value, 1));
        }
    }
    for (const auto& [group, histogram] : histograms) {
        const int bits = types[group] == DType::Int16 ? 16 : 8;
        chosen.try_emplace(group, quantization_for(choose_range(histogram, observer, bits), types[group]));
    }

    warn_of_constant_values(graph, calibration, result.warnings);
    for (ValueId id = 0; id < source.values.size(); ++id)
        if (wanted[id] && !graph[id].is_constant()) graph[id].quantization = chosen.at(groups.find(id));
    WeightQuantizer quantize_weights(graph, calibration, options.bias_correction, result.warnings);
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
        if (rules[n] == ResultRule::Float) continue;
        auto& node = graph.nodes[n];
        for (std::size_t i = 0; i < node.inputs.size(); ++i) {
            const auto id = node.inputs[i];
            if (!is_activation(graph, node, i) || !graph[id].is_constant() || graph[id].quantization) continue;
            TRY_ASSIGN(const auto numbers, real_values(graph[id]));
            node.inputs[i] = graph.add_value(stored(graph[id], chosen.at(groups.find(id)), numbers));
        }
        if (node.inputs.size() > 1 && is_weight(node, 1)) TRY(quantize_weights(node));
    }
    return result;
}

namespace {

// Some samples serve for choices and corrections; more cost time and change little.
constexpr std::size_t kJudged = 12, kCorrected = 8;
constexpr double kEqualisation = 0.65;
// What a handful of samples can tell: the first choice stands unless another is better by this many decibels.
constexpr double kClear = 0.5;

std::vector<Observer> candidates(const QuantizeOptions& options) {
    if (options.observer) return {*options.observer};
    return {Observer::Percentile, Observer::Mse};
}

std::size_t stride(std::size_t samples) {
    return std::max<std::size_t>(samples / kJudged, 1);
}

struct Choice {
    Quantized network;
    std::vector<std::vector<double>> channel_peaks;
};

/// The best observer's network, corrected.
host::Result<Choice> best_of(const Graph& graph, std::span<const Sample> samples, const QuantizeOptions& options,
                             std::string_view what) {
    TRY_ASSIGN(auto calibration, calibrate(graph, samples, options.threads, [&](std::size_t done) {
                   if (options.progress) options.progress(what, done, samples.size());
               }));
    // Spread evenly: neighbours in a folder are often cut from one picture.
    std::vector<Sample> judged;
    std::vector<std::vector<float>> expected;
    for (std::size_t i = 0; i < samples.size() && judged.size() < kJudged; i += stride(samples.size())) {
        judged.push_back(samples[i]);
        expected.push_back(calibration.outputs[i]);
    }
    std::optional<Quantized> best;
    for (const auto observer : candidates(options)) {
        TRY_ASSIGN(auto candidate, apply_calibration(graph, calibration, observer, options));
        TRY_ASSIGN(candidate.judged_snr_db, output_snr(candidate.graph, judged, expected, options.threads));
        if (!best || candidate.judged_snr_db > best->judged_snr_db + kClear) best = std::move(candidate);
    }
    if (options.measured_correction.value_or(options.activations != Activations::Int8)) {
        const auto few = samples.first(std::min(samples.size(), kCorrected));
        TRY(correct_biases(graph, best->graph, few, options.threads));
        TRY_ASSIGN(best->judged_snr_db, output_snr(best->graph, judged, expected, options.threads));
    }
    return Choice{std::move(*best), std::move(calibration.channel_peaks)};
}

}  // namespace

host::Result<Quantized> quantize(const Graph& graph, std::span<const Sample> samples, const QuantizeOptions& options) {
    TRY_ASSIGN(auto plain, best_of(graph, samples, options, "calibrating"));
    if (!options.equalisation) return std::move(plain.network);
    const auto even = equalize(graph, plain.channel_peaks, kEqualisation);
    if (even.values.size() == graph.values.size()) return std::move(plain.network);
    TRY_ASSIGN(auto equalised, best_of(even, samples, options, "equalising"));
    if (equalised.network.judged_snr_db <= plain.network.judged_snr_db + kClear) return std::move(plain.network);
    equalised.network.equalised = true;
    return std::move(equalised.network);
}

}  // namespace talpa::compiler
