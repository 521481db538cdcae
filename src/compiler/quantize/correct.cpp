#include "compiler/quantize/correct.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "compiler/floats/executor.h"
#include "compiler/graph/ops.h"

namespace talpa::compiler {

namespace {

bool has_quantized_bias(const Graph& graph, const Node& node) {
    const bool weighted = node.op == Op::Conv2d || node.op == Op::FullyConnected;
    if (!weighted || node.inputs.size() < 3 || node.inputs[2] == kNoValue) return false;
    const auto& bias = graph[node.inputs[2]];
    return bias.is_constant() && bias.stored_type() == DType::Int32 && bias.quantization &&
           !bias.quantization->per_tensor() && graph[node.outputs[0]].shape.back() == bias.shape[0];
}

/// The node alone, without its clamp and without rounding of the result, over given operands.
host::Result<FloatExecutor> lone(const Graph& graph, const Node& node, Graph& storage) {
    Node copy = node;
    if (auto* clamp = fused_clamp(copy)) *clamp = {};
    storage = Graph{};
    storage.values.resize(graph.values.size());
    for (const auto id : node.inputs)
        if (id != kNoValue) storage[id] = graph[id];
    storage[node.outputs[0]] = graph[node.outputs[0]];
    storage[node.outputs[0]].quantization.reset();
    for (const auto id : node.inputs)
        if (id != kNoValue && !graph[id].is_constant() &&
            std::ranges::find(storage.inputs, id) == storage.inputs.end()) {
            storage.inputs.push_back(id);
            storage[id].quantization.reset();
        }
    storage.nodes.push_back(std::move(copy));
    storage.outputs = node.outputs;
    return FloatExecutor::create(storage);
}

/// One network's values for every sample, computed node by node; values that no later node reads are dropped.
class Walk {
  public:
    Walk(const Graph& graph, std::span<const Sample> samples, bool rounds)
        : graph_(graph), rounds_(rounds), uses_(find_uses(graph)), values_(samples.size()) {
        for (std::size_t i = 0; i < samples.size(); ++i) {
            values_[i].resize(graph.values.size());
            for (std::size_t n = 0; n < graph.inputs.size(); ++n) {
                values_[i][graph.inputs[n]] = samples[i][n];
                finish(graph.inputs[n], {}, values_[i][graph.inputs[n]]);
            }
        }
    }

    /// The node's results before clamp and rounding.
    host::Result<std::vector<std::vector<float>>> raw(const Node& node, unsigned threads) {
        Graph storage;
        TRY_ASSIGN(const auto executor, lone(graph_, node, storage));
        std::vector<std::vector<float>> results(values_.size());
        std::vector<FloatExecutor::Workspace> workspaces(std::max(threads, 1u));
        TRY(for_each_sample(values_.size(), threads, [&](std::size_t i, unsigned worker) -> host::Result<void> {
            Sample operands;
            for (const auto id : storage.inputs) operands.push_back(values_[i][id]);
            auto outputs = executor.run(operands, workspaces[worker]);
            if (!outputs) return std::unexpected(std::move(outputs.error()));
            results[i] = std::move((*outputs)[0]);
            return {};
        }));
        return results;
    }

    void keep(const Node& node, std::vector<std::vector<float>> results, std::uint32_t index) {
        const Clamp* clamp = fused_clamp(node);
        for (std::size_t i = 0; i < values_.size(); ++i) {
            finish(node.outputs[0], clamp != nullptr ? *clamp : Clamp{}, results[i]);
            values_[i][node.outputs[0]] = std::move(results[i]);
            for (const auto id : node.inputs)
                if (id != kNoValue && uses_.readers[id].back() == index) values_[i][id] = {};
        }
    }

  private:
    void finish(ValueId id, const Clamp& clamp, std::vector<float>& numbers) const {
        const auto low = static_cast<float>(clamp.min), high = static_cast<float>(clamp.max);
        for (auto& x : numbers) x = std::clamp(x, low, high);
        if (rounds_) round_to_quantization(graph_[id], numbers);
    }

    const Graph& graph_;
    bool rounds_;
    Uses uses_;
    std::vector<std::vector<std::vector<float>>> values_;  ///< by sample, by value
};

/// Below this many numbers a channel's mean error says more about the samples than about the layer.
constexpr std::size_t kEnough = 1000;

/// Mean of b - a for each channel; zeros where too few numbers were seen.
std::vector<double> mean_shift(const std::vector<std::vector<float>>& a, const std::vector<std::vector<float>>& b,
                               std::size_t channels) {
    std::vector<double> shift(channels, 0);
    std::size_t count = 0;
    for (std::size_t s = 0; s < a.size(); ++s)
        for (std::size_t i = 0; i < a[s].size(); i += channels, ++count)
            for (std::size_t c = 0; c < channels; ++c)
                shift[c] += static_cast<double>(b[s][i + c]) - static_cast<double>(a[s][i + c]);
    if (count < kEnough) return std::vector<double>(channels, 0);
    for (auto& x : shift) x /= static_cast<double>(count);
    return shift;
}

/// Takes `shift` off the bias; returns what was really taken off, in whole steps.
std::vector<double> take_off(Value& bias, const std::vector<double>& shift) {
    auto bytes = std::make_shared<Bytes>(*bias.constant);
    std::vector<double> taken(shift.size());
    for (std::size_t c = 0; c < shift.size(); ++c) {
        std::int32_t stored = 0;
        std::memcpy(&stored, bytes->data() + 4 * c, 4);
        const double scale = bias.quantization->scales[c];
        const double wanted =
            std::clamp(static_cast<double>(stored) - std::nearbyint(shift[c] / scale), -0x7FFFFFFFp0, 0x7FFFFFFFp0);
        taken[c] = (static_cast<double>(stored) - wanted) * scale;
        stored = static_cast<std::int32_t>(wanted);
        std::memcpy(bytes->data() + 4 * c, &stored, 4);
    }
    bias.constant = std::move(bytes);
    return taken;
}

}  // namespace

host::Result<void> correct_biases(const Graph& exact, Graph& quantized, std::span<const Sample> samples,
                                  unsigned threads) {
    Walk reference(exact, samples, false), rounded(quantized, samples, true);
    for (std::uint32_t n = 0; n < quantized.nodes.size(); ++n) {
        const auto& node = quantized.nodes[n];
        TRY_ASSIGN(auto wanted, reference.raw(exact.nodes[n], threads));
        TRY_ASSIGN(auto got, rounded.raw(node, threads));
        if (has_quantized_bias(quantized, node)) {
            auto& bias = quantized[node.inputs[2]];
            const auto channels = static_cast<std::size_t>(bias.shape[0]);
            const auto taken = take_off(bias, mean_shift(wanted, got, channels));
            for (auto& sample : got)
                for (std::size_t i = 0; i < sample.size(); ++i) sample[i] -= static_cast<float>(taken[i % channels]);
        }
        reference.keep(exact.nodes[n], std::move(wanted), n);
        rounded.keep(node, std::move(got), n);
    }
    return {};
}

}  // namespace talpa::compiler
