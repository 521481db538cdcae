// Builds a float graph of a known architecture out of named weights. Every weight is asked for with the shape that it
// must have; what is missing, of another shape or left over is listed together at the end (model-formats, section 2.6).
#pragma once

#include <set>
#include <string>
#include <vector>

#include "compiler/graph/builder.h"
#include "compiler/import/weights_file/weights.h"

namespace talpa::compiler::import {

struct ConvSpec {
    std::int64_t in, out;
    Pair kernel{1, 1};
    Pair stride{1, 1};
    Edges padding{};
    std::int64_t groups = 1;
};

class Net {
  public:
    Net(const WeightsFile& weights, std::string architecture)
        : weights_(weights), builder_(graph_), name_(std::move(architecture)) {}

    /// N x C x H x W, brought to channels-last at once.
    ValueId input(std::int64_t channels, std::int64_t height, std::int64_t width);
    /// Named "NAME.weight", and "NAME.bias" where the file has it.
    ValueId conv(ValueId x, const std::string& name, const ConvSpec& spec);
    ValueId batch_norm(ValueId x, const std::string& name, double epsilon);
    ValueId clamp(ValueId x, double low, double high);
    ValueId relu(ValueId x);
    ValueId add(ValueId x, ValueId y);
    ValueId max_pool(ValueId x, std::int64_t kernel, std::int64_t stride, std::int64_t padding);
    /// Mean over height and width, then a fully connected layer of as many classes as the file has.
    void classifier(ValueId x, const std::string& name, std::int64_t features);

    [[nodiscard]] const Shape& shape(ValueId id) const { return graph_[id].shape; }
    [[nodiscard]] std::int64_t channels(ValueId id) const { return graph_[id].shape.back(); }
    /// Does the file have that tensor?
    [[nodiscard]] bool has(const std::string& name) const { return weights_.tensors.contains(name); }

    [[nodiscard]] host::Result<Graph> finish();

    /// Everything that was asked for so far, in that order; kAnySize where any number of classes will do.
    struct Wanted {
        std::string name;
        Shape shape;
    };
    [[nodiscard]] const std::vector<Wanted>& wanted() const { return wanted_; }
    static constexpr std::int64_t kAnySize = -1;

  private:
    ValueId weight(const std::string& name, Shape wanted);
    ValueId node(Op op, std::vector<ValueId> operands, Attributes attributes, const std::string& name);

    const WeightsFile& weights_;
    Graph graph_;
    Builder builder_;
    std::string name_;
    std::set<std::string> used_;
    std::vector<std::string> complaints_;
    std::vector<Wanted> wanted_;
};

}  // namespace talpa::compiler::import
