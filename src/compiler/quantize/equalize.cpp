#include "compiler/quantize/equalize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "compiler/floats/executor.h"
#include "compiler/quantize/value_groups.h"

namespace talpa::compiler {

namespace {

/// Channels whose ranges are closer than this have little to gain, and their readers' weights something to lose.
constexpr double kUneven = 8;

/// Values that one scale for each channel must serve, with the convolutions at their ends.
struct Linear {
    std::vector<ValueId> values;
    std::vector<std::uint32_t> writers, readers;
    bool possible = true;
};

bool is_plain_add(const Graph& graph, const Node& node) {
    if (node.op != Op::Add || node.as<BinaryAttr>().clamp.any()) return false;
    return std::ranges::all_of(node.inputs, [&](ValueId id) {
        return !graph[id].is_constant() && graph[id].shape == graph[node.outputs[0]].shape;
    });
}

bool reads_channels(const Graph& graph, const Node& node) {
    if (node.op != Op::Conv2d || !graph[node.inputs[1]].is_constant()) return false;
    const auto groups = node.as<ConvAttr>().groups;
    return groups == 1 || graph[node.inputs[1]].shape[3] == 1;
}

bool writes_freely(const Graph& graph, const Node& node) {
    return node.op == Op::Conv2d && !node.as<ConvAttr>().clamp.any() && graph[node.inputs[1]].is_constant();
}

std::vector<Linear> find_linear(const Graph& graph) {
    const auto uses = find_uses(graph);
    ValueGroups together(graph.values.size());
    for (const auto& node : graph.nodes)
        if (is_plain_add(graph, node))
            for (const auto id : node.inputs) together.unite(node.outputs[0], id);
    std::map<ValueId, Linear> groups;
    for (ValueId id = 0; id < graph.values.size(); ++id) {
        if (graph[id].is_constant() || graph[id].shape.size() != 4) continue;
        auto& group = groups[together.find(id)];
        group.values.push_back(id);
        const bool at_border = uses.producer[id] < 0 || std::ranges::find(graph.outputs, id) != graph.outputs.end();
        if (at_border) {
            group.possible = false;
            continue;
        }
        const auto writer = static_cast<std::uint32_t>(uses.producer[id]);
        if (writes_freely(graph, graph.nodes[writer]))
            group.writers.push_back(writer);
        else if (!is_plain_add(graph, graph.nodes[writer]))
            group.possible = false;
        for (const auto reader : uses.readers[id]) {
            const auto& node = graph.nodes[reader];
            if (reads_channels(graph, node) && node.inputs[0] == id)
                group.readers.push_back(reader);
            else if (!is_plain_add(graph, node))
                group.possible = false;
        }
    }
    std::vector<Linear> found;
    for (auto& [id, group] : groups)
        if (group.possible && !group.writers.empty() && !group.readers.empty()) found.push_back(std::move(group));
    return found;
}

void replace_constant(Graph& graph, ValueId& operand, const std::vector<float>& numbers) {
    Value value = graph[operand];
    value.name += ".equalized";
    auto bytes = std::make_shared<Bytes>(numbers.size() * sizeof(float));
    std::memcpy(bytes->data(), numbers.data(), bytes->size());
    value.constant = std::move(bytes);
    operand = graph.add_value(std::move(value));
}

/// Input channel that weight `i` of a reader meets.
std::size_t channel_of(const Graph& graph, const Node& node, std::size_t i) {
    const auto& shape = graph[node.inputs[1]].shape;
    const auto depth = static_cast<std::size_t>(shape[3]);
    const auto groups = static_cast<std::size_t>(node.as<ConvAttr>().groups);
    if (groups == 1) return i % depth;
    const std::size_t each = static_cast<std::size_t>(shape[1] * shape[2]);
    return i / each / (static_cast<std::size_t>(shape[0]) / groups);
}

/// For each channel the largest weight that reads it, in parts of its filter's largest.
std::vector<double> weight_share(const Graph& graph, const Linear& group, std::size_t channels) {
    std::vector<double> share(channels, 1e-3);
    for (const auto reader : group.readers) {
        const auto& node = graph.nodes[reader];
        const auto weights = real_values(graph[node.inputs[1]]);
        if (!weights) continue;
        const std::size_t each = weights->size() / static_cast<std::size_t>(graph[node.inputs[1]].shape[0]);
        for (std::size_t first = 0; first < weights->size(); first += each) {
            double most = 0;
            for (std::size_t k = 0; k < each; ++k)
                most = std::max(most, std::fabs(static_cast<double>((*weights)[first + k])));
            if (most == 0) continue;
            for (std::size_t k = 0; k < each; ++k) {
                auto& s = share[channel_of(graph, node, first + k)];
                s = std::max(s, std::fabs(static_cast<double>((*weights)[first + k])) / most);
            }
        }
    }
    return share;
}

/// What each channel is divided by; their geometric mean is 1. Empty where a peak is not known.
std::vector<double> choose_scales(const Graph& graph, const Linear& group,
                                  const std::vector<std::vector<double>>& peaks, double strength) {
    const auto channels = static_cast<std::size_t>(graph[group.values[0]].shape.back());
    std::vector<double> peak(channels, 0);
    for (const auto id : group.values) {
        if (peaks[id].size() != channels) return {};
        for (std::size_t c = 0; c < channels; ++c) peak[c] = std::max(peak[c], peaks[id][c]);
    }
    const double most = *std::max_element(peak.begin(), peak.end());
    const double least = *std::min_element(peak.begin(), peak.end());
    if (most <= 0 || most < kUneven * least) return {};
    const auto share = weight_share(graph, group, channels);
    std::vector<double> scales(channels);
    double logs = 0;
    for (std::size_t c = 0; c < channels; ++c) {
        scales[c] = std::pow(std::max(peak[c], most * 1e-3), strength) / std::pow(share[c], 1 - strength);
        logs += std::log(scales[c]);
    }
    const double mean = std::exp(logs / static_cast<double>(channels));
    for (auto& s : scales) s = std::clamp(s / mean, 1.0 / 16, 16.0);
    return scales;
}

}  // namespace

Graph equalize(const Graph& source, const std::vector<std::vector<double>>& peaks, double strength) {
    Graph graph = source;
    if (strength <= 0) return graph;
    for (const auto& group : find_linear(source)) {
        const auto scales = choose_scales(graph, group, peaks, strength);
        if (scales.empty()) continue;
        for (const auto writer : group.writers) {
            auto& node = graph.nodes[writer];
            auto weights = real_values(graph[node.inputs[1]]);
            const std::size_t each = weights->size() / scales.size();
            for (std::size_t i = 0; i < weights->size(); ++i)
                (*weights)[i] = static_cast<float>(static_cast<double>((*weights)[i]) / scales[i / each]);
            replace_constant(graph, node.inputs[1], *weights);
            if (node.inputs.size() < 3 || node.inputs[2] == kNoValue) continue;
            auto bias = real_values(graph[node.inputs[2]]);
            for (std::size_t c = 0; c < bias->size(); ++c)
                (*bias)[c] = static_cast<float>(static_cast<double>((*bias)[c]) / scales[c]);
            replace_constant(graph, node.inputs[2], *bias);
        }
        for (const auto reader : group.readers) {
            auto& node = graph.nodes[reader];
            auto weights = real_values(graph[node.inputs[1]]);
            for (std::size_t i = 0; i < weights->size(); ++i)
                (*weights)[i] =
                    static_cast<float>(static_cast<double>((*weights)[i]) * scales[channel_of(graph, node, i)]);
            replace_constant(graph, node.inputs[1], *weights);
        }
    }
    return graph;
}

}  // namespace talpa::compiler
