#include "compiler/compare/layers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "compiler/floats/executor.h"
#include "compiler/quantize/compare_runs.h"

namespace talpa::compiler {
namespace {

using Values = std::vector<std::optional<std::vector<float>>>;

host::Result<Values> all_values(const Graph& graph, Rounding rounding, const Sample& inputs) {
    TRY_ASSIGN(const auto executor, FloatExecutor::create(graph, rounding));
    FloatExecutor::Workspace workspace;
    Values values(graph.values.size());
    const auto outputs = executor.run(inputs, workspace, [&](ValueId id, std::span<const float> data) {
        values[id].emplace(data.begin(), data.end());
    });
    if (!outputs) return std::unexpected(outputs.error());
    return values;
}

/// What computes `target` from values that are known, as a graph of its own.
class Neighbourhood {
  public:
    Neighbourhood(const Graph& graph, const Uses& uses, const Values& known)
        : graph_(graph), uses_(uses), known_(known) {}

    /// Nothing if it would take more than a few operators, or an input that is not known.
    bool operator()(ValueId target, std::vector<float>& result, std::uint32_t& hidden) {
        if (!collect(target, 0)) return false;
        hidden = static_cast<std::uint32_t>(nodes_.size()) - 1;
        for (const std::uint32_t n : nodes_) {
            Node node = graph_.nodes[n];
            for (ValueId& id : node.inputs)
                if (id != kNoValue) id = copied(id);
            for (ValueId& id : node.outputs) id = copied(id);
            part_.nodes.push_back(std::move(node));
        }
        part_.outputs = {copied(target)};
        const auto executor = FloatExecutor::create(part_, Rounding::Quantized);
        if (!executor) return false;
        FloatExecutor::Workspace workspace;
        auto outputs = executor->run(inputs_, workspace);
        if (!outputs) return false;
        result = std::move((*outputs)[0]);
        return true;
    }

  private:
    bool collect(ValueId id, int depth) {
        constexpr int kFar = 8;
        const auto producer = uses_.producer[id];
        if (producer < 0 || depth > kFar) return false;
        const auto n = static_cast<std::uint32_t>(producer);
        if (!nodes_.insert(n).second) return true;
        for (const ValueId in : graph_.nodes[n].inputs) {
            if (in == kNoValue || graph_[in].is_constant() || known_[in]) continue;
            if (!collect(in, depth + 1)) return false;
        }
        return true;
    }
    ValueId copied(ValueId id) {
        const auto [at, added] = ids_.try_emplace(id, 0);
        if (!added) return at->second;
        at->second = part_.add_value(graph_[id]);
        const bool made_here =
            uses_.producer[id] >= 0 && nodes_.contains(static_cast<std::uint32_t>(uses_.producer[id]));
        if (!graph_[id].is_constant() && !made_here) {
            part_.inputs.push_back(at->second);
            inputs_.push_back(*known_[id]);
        }
        return at->second;
    }

    const Graph& graph_;
    const Uses& uses_;
    const Values& known_;
    std::set<std::uint32_t> nodes_;  ///< in an order that can be executed
    std::map<ValueId, ValueId> ids_;
    Graph part_;
    Sample inputs_;
};

void compare_with_operator(const Graph& graph, const Uses& uses, const Values& known, LayerComparison& layer) {
    std::vector<float> expected;
    if (!Neighbourhood(graph, uses, known)(layer.value, expected, layer.hidden)) return;
    const auto& got = *known[layer.value];
    if (got.size() != expected.size()) return;
    const double step = graph[layer.value].quantization->scales[0];
    double worst = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
        const double away = std::fabs(static_cast<double>(got[i]) - static_cast<double>(expected[i])) / step;
        worst = std::max(worst, away);
        if (away <= steps_allowed(layer.hidden)) continue;
        if (layer.off++ != 0) continue;
        layer.first_off = i;
        layer.program_value = got[i];
        layer.expected_value = expected[i];
    }
    layer.worst_steps = worst;
}

host::Result<void> spread_of_outcomes(const Graph& quantized, const Sample& inputs, const std::vector<float>& real,
                                      NetworkComparison& result) {
    constexpr std::uint32_t kOutcomes = 8;
    result.output_least_db = result.output_most_db = result.output_quantized_db;
    TRY_ASSIGN(const auto executor, FloatExecutor::create(quantized, Rounding::Quantized));
    FloatExecutor::Workspace workspace;
    for (std::uint32_t outcome = 1; outcome <= kOutcomes; ++outcome) {
        TRY_ASSIGN(const auto outputs, executor.run(inputs, workspace, {}, outcome * 0x9E3779B1u));
        const double db = snr_db(real, outputs[0]);
        result.output_least_db = std::min(result.output_least_db, db);
        result.output_most_db = std::max(result.output_most_db, db);
    }
    return {};
}

}  // namespace

host::Result<NetworkComparison> compare_layers(const Graph& exact, const Graph& quantized, const Sample& inputs,
                                               const TracedRun* program, double least_db) {
    TRY_ASSIGN(const Values real, all_values(exact, Rounding::None, inputs));
    TRY_ASSIGN(const Values foretold, all_values(quantized, Rounding::Quantized, inputs));
    const Uses uses = find_uses(quantized);
    Values known;
    if (program != nullptr) {
        known = program->values;
        // An input between two steps may be rounded to either: what the program had counts.
        for (const ValueId id : quantized.inputs)
            if (!known[id]) known[id] = foretold[id];
    }
    NetworkComparison result;
    for (std::uint32_t n = 0; n < quantized.nodes.size(); ++n)
        for (const ValueId id : quantized.nodes[n].outputs) {
            const auto& q = quantized[id].quantization;
            if (!q || !q->per_tensor() || id >= real.size() || !real[id] || !foretold[id]) continue;
            LayerComparison layer{.node = n, .value = id, .quantized_db = snr_db(*real[id], *foretold[id])};
            layer.elements = real[id]->size();
            if (program != nullptr && known[id] && known[id]->size() == layer.elements) {
                layer.program_db = snr_db(*real[id], *known[id]);
                compare_with_operator(quantized, uses, known, layer);
            }
            if (layer.quantized_db < least_db && !result.first_noisy) result.first_noisy = result.layers.size();
            if (layer.off != 0 && !result.first_wrong) result.first_wrong = result.layers.size();
            result.layers.push_back(layer);
        }
    if (!quantized.outputs.empty()) {
        const ValueId exact_out = exact.outputs[0], out = quantized.outputs[0];
        if (real[exact_out] && foretold[out]) {
            result.output_quantized_db = snr_db(*real[exact_out], *foretold[out]);
            TRY(spread_of_outcomes(quantized, inputs, *real[exact_out], result));
        }
        if (program != nullptr && real[exact_out] && !program->outputs.empty() &&
            program->outputs[0].size() == real[exact_out]->size())
            result.output_program_db = snr_db(*real[exact_out], program->outputs[0]);
    }
    return result;
}

}  // namespace talpa::compiler
