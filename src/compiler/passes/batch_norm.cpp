// y = (x - mean) / sqrt(variance + epsilon) * gamma + beta, per channel: a factor and an offset (model-formats, section
// 1.5). Both go into the weights of the layer before, computed in double.
#include <algorithm>
#include <cmath>

#include "compiler/graph/builder.h"
#include "compiler/graph/constant.h"
#include "compiler/graph/ops.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rebuild.h"

namespace talpa::compiler {
namespace {

using host::failure;
using host::Result;

struct Affine {
    std::vector<double> factor, offset;
};

Result<Affine> affine_of(const Graph& g, const Node& node) {
    const auto channels = static_cast<std::size_t>(g[node.inputs[0]].shape.back());
    const auto parameter = [&](std::size_t i, float usual) -> Result<std::vector<float>> {
        if (node.inputs[i] == kNoValue) return std::vector<float>(channels, usual);
        if (!g[node.inputs[i]].is_constant())
            return failure(ErrorCode::NotSupported, "a parameter of the batch norm is computed");
        return real_numbers(g[node.inputs[i]]);
    };
    TRY_ASSIGN(const auto gamma, parameter(1, 1));
    TRY_ASSIGN(const auto beta, parameter(2, 0));
    TRY_ASSIGN(const auto mean, parameter(3, 0));
    TRY_ASSIGN(const auto variance, parameter(4, 1));
    Affine a;
    for (std::size_t c = 0; c < channels; ++c) {
        const double spread = static_cast<double>(variance[c]) + node.as<NormAttr>().epsilon;
        if (!(spread > 0)) return failure(ErrorCode::InvalidProgram, "channel {} has variance {}", c, variance[c]);
        a.factor.push_back(static_cast<double>(gamma[c]) / std::sqrt(spread));
        a.offset.push_back(static_cast<double>(beta[c]) - static_cast<double>(mean[c]) * a.factor.back());
    }
    return a;
}

class FoldBatchNorms : public Rebuild {
  public:
    explicit FoldBatchNorms(const Graph& old)
        : Rebuild(old), uses_(find_uses(old)), seen_(old.values.size(), kNoValue) {}

  private:
    void carried(ValueId old, ValueId id) override { seen_[old] = id; }
    Result<ValueId> plain(ValueId old) override { return seen_[old]; }

    /// The layer whose weights take the batch norm, or null.
    [[nodiscard]] const Node* layer_before(const Node& norm) const {
        const auto x = norm.inputs[0];
        if (uses_.producer[x] < 0 || uses_.readers[x].size() != 1 || old_[x].quantization ||
            std::ranges::find(old_.outputs, x) != old_.outputs.end())
            return nullptr;
        const Node& layer = old_.nodes[static_cast<std::size_t>(uses_.producer[x])];
        if (!has_weights(layer.op)) return nullptr;
        const bool fixed = old_[layer.inputs[1]].is_constant() && !old_[layer.inputs[1]].quantization &&
                           (layer.inputs[2] == kNoValue ||
                            (old_[layer.inputs[2]].is_constant() && !old_[layer.inputs[2]].quantization));
        return fixed && !fused_clamp(layer)->any() ? &layer : nullptr;
    }

    Result<void> fold(const Node& norm, const Node& layer) {
        TRY_ASSIGN(const Affine a, affine_of(old_, norm));
        const Value& weight = old_[layer.inputs[1]];
        auto w = real_numbers(weight);
        const std::size_t row = w.size() / std::max<std::size_t>(a.factor.size(), 1);
        for (std::size_t i = 0; i < w.size(); ++i)
            w[i] = static_cast<float>(static_cast<double>(w[i]) * a.factor[i / row]);
        std::vector<float> bias(a.factor.size(), 0);
        if (layer.inputs[2] != kNoValue) bias = real_numbers(old_[layer.inputs[2]]);
        for (std::size_t c = 0; c < bias.size(); ++c)
            bias[c] = static_cast<float>(static_cast<double>(bias[c]) * a.factor[c] + a.offset[c]);
        const auto weight_id = build_.value(float_constant(weight.name + ".folded", weight.shape, w));
        const auto bias_id =
            build_.value(float_constant(weight.name + ".bias", {static_cast<std::int64_t>(bias.size())}, bias));
        build_.at(layer.source);
        TRY_ASSIGN(seen_[norm.outputs[0]], build_.add(layer.op, {seen_[layer.inputs[0]], weight_id, bias_id},
                                                      layer.attributes, old_[norm.outputs[0]].name));
        return {};
    }

    Result<void> spell_out(const Node& norm) {
        TRY_ASSIGN(const Affine a, affine_of(old_, norm));
        const std::string name = old_[norm.outputs[0]].name;
        const Shape shape{static_cast<std::int64_t>(a.factor.size())};
        const auto constant = [&](const char* what, const std::vector<double>& v) {
            return build_.value(float_constant(name + what, shape, std::vector<float>(v.begin(), v.end())));
        };
        TRY_ASSIGN(const auto scaled, build_.add(Op::Mul, {seen_[norm.inputs[0]], constant(".factor", a.factor)},
                                                 BinaryAttr{}, name + ".scaled"));
        TRY_ASSIGN(seen_[norm.outputs[0]],
                   build_.add(Op::Add, {scaled, constant(".offset", a.offset)}, BinaryAttr{}, name));
        return {};
    }

    Result<void> node(const Node& n) override {
        if (n.op == Op::BatchNorm) {
            const Node* layer = layer_before(n);
            return layer != nullptr ? fold(n, *layer) : spell_out(n);
        }
        TRY_ASSIGN(seen_[n.outputs[0]], copy(n));
        return {};
    }

    Uses uses_;
    std::vector<ValueId> seen_;
};

}  // namespace

Result<void> fold_batch_norms(Graph& graph) {
    if (std::ranges::none_of(graph.nodes, [](const Node& n) { return n.op == Op::BatchNorm; })) return {};
    TRY_ASSIGN(graph, FoldBatchNorms(graph).run());
    remove_dead(graph);
    return {};
}

}  // namespace talpa::compiler
