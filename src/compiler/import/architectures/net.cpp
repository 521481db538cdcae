#include "compiler/import/architectures/net.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>

#include "compiler/graph/constant.h"
#include "compiler/graph/infer.h"
#include "compiler/import/weights.h"

namespace talpa::compiler::import {

using host::Error;
using host::Result;

/// The weight, or zeros of the wanted shape, so that the rest can be looked at too.
ValueId Net::weight(const std::string& name, Shape wanted) {
    const auto found = weights_.tensors.find(name);
    used_.insert(name);
    wanted_.push_back({name, wanted});
    if (found == weights_.tensors.end()) {
        complaints_.push_back(fmt::format("missing: '{}' of shape {}", name, shape_text(wanted)));
    } else {
        Shape sizes = found->second.sizes;
        bool fits = sizes.size() == wanted.size();
        for (std::size_t d = 0; fits && d < sizes.size(); ++d) fits = wanted[d] == kAnySize || wanted[d] == sizes[d];
        if (fits) {
            auto value = load_tensor(name, found->second, Finite::Required);
            if (value && value->type == DType::Float32) return builder_.value(std::move(*value));
            complaints_.push_back(
                fmt::format("'{}': {}", name, value ? "not a tensor of reals" : value.error().message));
        } else {
            complaints_.push_back(
                fmt::format("'{}' has shape {}, {} is needed", name, shape_text(sizes), shape_text(wanted)));
        }
    }
    for (auto& size : wanted) size = std::max<std::int64_t>(size, 1);
    const std::vector<float> zeros(static_cast<std::size_t>(element_count(wanted)), 0.0F);
    return builder_.value(float_constant(name, wanted, zeros));
}

ValueId Net::node(Op op, std::vector<ValueId> operands, Attributes attributes, const std::string& name) {
    builder_.at({.node = name, .target = {}, .module = name});
    auto id = builder_.add(op, operands, std::move(attributes), name);
    if (id) return *id;
    complaints_.push_back(fmt::format("{}: {}", name, id.error().message));
    return operands[0];
}

ValueId Net::input(std::int64_t channels, std::int64_t height, std::int64_t width) {
    const auto x = builder_.value({.name = "x", .shape = {1, channels, height, width}});
    graph_.inputs = {x};
    return node(Op::Permute, {x}, PermuteAttr{kToChannelsLast}, "x.nhwc");
}

ValueId Net::conv(ValueId x, const std::string& name, const ConvSpec& s) {
    auto w = weight(name + ".weight", {s.out, s.in / s.groups, s.kernel[0], s.kernel[1]});
    if (const auto turned = weight_from_oihw(builder_, w, 2)) w = *turned;
    const ValueId bias = has(name + ".bias") ? weight(name + ".bias", {s.out}) : kNoValue;
    return node(Op::Conv2d, {x, w, bias}, ConvAttr{.stride = s.stride, .padding = s.padding, .groups = s.groups}, name);
}

ValueId Net::batch_norm(ValueId x, const std::string& name, double epsilon) {
    std::vector<ValueId> operands{x};
    for (const char* part : {".weight", ".bias", ".running_mean", ".running_var"})
        operands.push_back(weight(name + part, {channels(x)}));
    used_.insert(name + ".num_batches_tracked");
    return node(Op::BatchNorm, operands, NormAttr{.epsilon = epsilon}, name);
}

ValueId Net::clamp(ValueId x, double low, double high) {
    return node(Op::ClampOp, {x}, UnaryAttr{.clamp = {low, high}}, graph_[x].name + ".act");
}

ValueId Net::relu(ValueId x) {
    return clamp(x, 0, std::numeric_limits<double>::infinity());
}

ValueId Net::add(ValueId x, ValueId y) {
    return node(Op::Add, {x, y}, BinaryAttr{}, graph_[y].name + ".sum");
}

ValueId Net::max_pool(ValueId x, std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
    return node(
        Op::MaxPool2d, {x},
        PoolAttr{
            .kernel = {kernel, kernel}, .stride = {stride, stride}, .padding = {padding, padding, padding, padding}},
        "maxpool");
}

void Net::classifier(ValueId x, const std::string& name, std::int64_t features) {
    const auto mean = node(Op::Mean, {x}, ReduceAttr{{1, 2}, false}, "avgpool");
    const auto w = weight(name + ".weight", {kAnySize, features});
    const auto bias = weight(name + ".bias", {graph_[w].shape[0]});
    graph_.outputs = {node(Op::FullyConnected, {mean, w, bias}, FullyConnectedAttr{}, name)};
}

Result<Graph> Net::finish() {
    for (const auto& [name, tensor] : weights_.tensors)
        if (!used_.contains(name))
            complaints_.push_back(fmt::format("unexpected: '{}' of shape {}", name, shape_text(tensor.sizes)));
    if (complaints_.empty()) {
        graph_.name = name_;
        return std::move(graph_);
    }
    constexpr std::size_t kShown = 60;
    const std::size_t shown = std::min(complaints_.size(), kShown);
    std::string text =
        fmt::format("the weights do not fit {}:\n  {}", name_,
                    fmt::join(complaints_.begin(), complaints_.begin() + static_cast<std::ptrdiff_t>(shown), "\n  "));
    if (complaints_.size() > shown) text += fmt::format("\n  … and {} more", complaints_.size() - shown);
    return std::unexpected(Error(ErrorCode::InvalidProgram, std::move(text)));
}

}  // namespace talpa::compiler::import
