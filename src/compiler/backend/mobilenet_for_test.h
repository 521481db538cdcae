// For tests and benchmarks only: MobileNetV2 with random weights as a quantized graph, for pictures of any size, and a
// long chain of convolutions. No file and no calibration are needed; scales keep the numbers within their ranges.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "compiler/graph/graph.h"

namespace talpa::compiler::testing {

class QuantizedNet {
  public:
    explicit QuantizedNet(std::uint32_t seed) : random_(seed) {}

    ValueId input(std::int64_t height, std::int64_t width, std::int64_t channels) {
        const ValueId id = graph_.add_value(map({1, height, width, channels}, 0, 0.05));
        graph_.inputs.push_back(id);
        return id;
    }
    ValueId conv(ValueId x, std::int64_t depth, std::int64_t kernel, std::int64_t stride, bool depthwise, bool relu) {
        const Shape in = graph_[x].shape;
        const double in_scale = graph_[x].quantization->scales[0], out_scale = relu ? 6.0 / 255 : 0.05;
        ConvAttr a;
        a.stride = {stride, stride};
        a.padding = {kernel / 2, kernel / 2, kernel / 2, kernel / 2};
        a.groups = depthwise ? in[3] : 1;
        if (relu) a.clamp = {0, 6};
        const Shape shape{depth, kernel, kernel, depthwise ? 1 : in[3]};
        const double fan = static_cast<double>(element_count(shape)) / static_cast<double>(depth);
        constexpr double kSigma = 30, kInput = 45, kOutput = 45;
        Value w;
        w.name = name() + ".weight";
        w.shape = shape;
        w.quantization = Quantization{};
        w.quantization->scales = {out_scale * kOutput / (std::sqrt(fan) * kSigma * kInput * in_scale)};
        w.quantization->zero_points = {0};
        std::normal_distribution<double> normal(0, kSigma);
        auto bytes = std::make_shared<Bytes>(static_cast<std::size_t>(element_count(shape)));
        for (auto& b : *bytes)
            b = static_cast<std::uint8_t>(static_cast<int>(std::clamp(normal(random_), -127.0, 127.0)));
        w.constant = std::move(bytes);
        const auto out = [](std::int64_t size, std::int64_t k, std::int64_t s) {
            return (size + k / 2 * 2 - k) / s + 1;
        };
        const ValueId weight = graph_.add_value(std::move(w));
        return node(
            Op::Conv2d, {x, weight, kNoValue}, a,
            map({1, out(in[1], kernel, stride), out(in[2], kernel, stride), depth}, relu ? -128 : 0, out_scale));
    }
    ValueId add(ValueId a, ValueId b) { return node(Op::Add, {a, b}, BinaryAttr{}, map(graph_[a].shape, 0, 0.06)); }
    ValueId mean(ValueId x) {
        return node(Op::Mean, {x}, ReduceAttr{{1, 2}, true}, map({1, 1, 1, graph_[x].shape[3]}, -128, 6.0 / 255));
    }
    Graph finish(ValueId result) {
        graph_.outputs = {result};
        return std::move(graph_);
    }

  private:
    [[nodiscard]] std::string name() const { return "v" + std::to_string(graph_.values.size()); }
    [[nodiscard]] Value map(Shape shape, std::int32_t zero_point, double scale) const {
        Value v;
        v.name = name();
        v.shape = std::move(shape);
        v.quantization = Quantization{};
        v.quantization->scales = {scale};
        v.quantization->zero_points = {zero_point};
        return v;
    }
    ValueId node(Op op, std::vector<ValueId> inputs, Attributes attributes, Value result) {
        Source source;
        source.node = result.name;
        return graph_.add_node(op, std::move(inputs), std::move(attributes), std::move(result), source);
    }

    std::mt19937 random_;
    Graph graph_;
};

/// The architecture with width 1.0 and 1000 classes, its input channels-last.
inline Graph mobilenet_v2(std::int64_t size) {
    struct Stage {
        std::int64_t expansion, channels, repeats, stride;
    };
    constexpr Stage kStages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                                 {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
    QuantizedNet net(7);
    ValueId x = net.conv(net.input(size, size, 3), 32, 3, 2, false, true);
    std::int64_t depth = 32;
    for (const Stage& s : kStages)
        for (std::int64_t r = 0; r < s.repeats; ++r) {
            const std::int64_t stride = r == 0 ? s.stride : 1, wide = depth * s.expansion;
            ValueId y = s.expansion == 1 ? x : net.conv(x, wide, 1, 1, false, true);
            y = net.conv(y, wide, 3, stride, true, true);
            y = net.conv(y, s.channels, 1, 1, false, false);
            x = stride == 1 && depth == s.channels ? net.add(x, y) : y;
            depth = s.channels;
        }
    x = net.conv(x, 1280, 1, 1, false, true);
    return net.finish(net.conv(net.mean(x), 1000, 1, 1, false, false));
}

/// `length` convolutions 3 x 3, each residual in pairs, all of one size.
inline Graph long_chain(std::int64_t length, std::int64_t size, std::int64_t depth) {
    QuantizedNet net(3);
    ValueId x = net.conv(net.input(size, size, 3), depth, 3, 1, false, true);
    for (std::int64_t i = 0; i < length; i += 2) {
        const ValueId y = net.conv(net.conv(x, depth, 3, 1, true, true), depth, 1, 1, false, false);
        x = i % 4 == 0 ? net.add(x, y) : y;
    }
    return net.finish(x);
}

}  // namespace talpa::compiler::testing
