#include "compiler/import/architectures/architectures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "compiler/import/architectures/net.h"

namespace talpa::compiler::import {
namespace {

using host::Error;
using host::Result;

constexpr double kTorchEpsilon = 1e-5, kEfficientNetEpsilon = 1e-3;

Edges around(std::int64_t n) {
    return {n, n, n, n};
}

ValueId relu6(Net& net, ValueId x) {
    return net.clamp(x, 0, 6);
}

void mobilenet_v2(Net& net, std::int64_t size) {
    struct Stage {
        std::int64_t expansion, channels, repeats, stride;
    };
    constexpr Stage kStages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                                 {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
    auto x = net.conv(net.input(3, size, size), "features.0.0",
                      {.in = 3, .out = 32, .kernel = {3, 3}, .stride = {2, 2}, .padding = around(1)});
    x = relu6(net, net.batch_norm(x, "features.0.1", kTorchEpsilon));
    int index = 1;
    for (const Stage& stage : kStages)
        for (std::int64_t r = 0; r < stage.repeats; ++r, ++index) {
            const auto in = net.channels(x), stride = r == 0 ? stage.stride : 1, wide = in * stage.expansion;
            const std::string base = fmt::format("features.{}.conv.", index);
            int part = 0;
            auto y = x;
            if (stage.expansion != 1) {
                y = net.conv(y, fmt::format("{}{}.0", base, part), {.in = in, .out = wide});
                y = relu6(net, net.batch_norm(y, fmt::format("{}{}.1", base, part++), kTorchEpsilon));
            }
            y = net.conv(y, fmt::format("{}{}.0", base, part),
                         {.in = wide,
                          .out = wide,
                          .kernel = {3, 3},
                          .stride = {stride, stride},
                          .padding = around(1),
                          .groups = wide});
            y = relu6(net, net.batch_norm(y, fmt::format("{}{}.1", base, part++), kTorchEpsilon));
            y = net.conv(y, fmt::format("{}{}", base, part), {.in = wide, .out = stage.channels});
            y = net.batch_norm(y, fmt::format("{}{}", base, part + 1), kTorchEpsilon);
            x = stride == 1 && in == stage.channels ? net.add(x, y) : y;
        }
    x = net.conv(x, "features.18.0", {.in = 320, .out = 1280});
    x = relu6(net, net.batch_norm(x, "features.18.1", kTorchEpsilon));
    net.classifier(x, "classifier.1", 1280);
}

void mobilenet_v1(Net& net, std::int64_t size) {
    struct Layer {
        std::int64_t channels, stride;
    };
    constexpr Layer kLayers[] = {{64, 1},  {128, 2}, {128, 1}, {256, 2}, {256, 1},  {512, 2}, {512, 1},
                                 {512, 1}, {512, 1}, {512, 1}, {512, 1}, {1024, 2}, {1024, 1}};
    auto x = net.conv(net.input(3, size, size), "model.0.0",
                      {.in = 3, .out = 32, .kernel = {3, 3}, .stride = {2, 2}, .padding = around(1)});
    x = net.relu(net.batch_norm(x, "model.0.1", kTorchEpsilon));
    int index = 1;
    for (const Layer& layer : kLayers) {
        const auto in = net.channels(x);
        const std::string base = fmt::format("model.{}.", index++);
        x = net.conv(x, base + "0",
                     {.in = in,
                      .out = in,
                      .kernel = {3, 3},
                      .stride = {layer.stride, layer.stride},
                      .padding = around(1),
                      .groups = in});
        x = net.relu(net.batch_norm(x, base + "1", kTorchEpsilon));
        x = net.conv(x, base + "3", {.in = in, .out = layer.channels});
        x = net.relu(net.batch_norm(x, base + "4", kTorchEpsilon));
    }
    net.classifier(x, "fc", 1024);
}

void resnet18(Net& net, std::int64_t size) {
    auto x = net.conv(net.input(3, size, size), "conv1",
                      {.in = 3, .out = 64, .kernel = {7, 7}, .stride = {2, 2}, .padding = around(3)});
    x = net.max_pool(net.relu(net.batch_norm(x, "bn1", kTorchEpsilon)), 3, 2, 1);
    for (int stage = 1; stage <= 4; ++stage)
        for (int block = 0; block < 2; ++block) {
            const std::int64_t out = 32 << stage, in = net.channels(x), stride = stage > 1 && block == 0 ? 2 : 1;
            const std::string base = fmt::format("layer{}.{}.", stage, block);
            auto y =
                net.conv(x, base + "conv1",
                         {.in = in, .out = out, .kernel = {3, 3}, .stride = {stride, stride}, .padding = around(1)});
            y = net.relu(net.batch_norm(y, base + "bn1", kTorchEpsilon));
            y = net.conv(y, base + "conv2", {.in = out, .out = out, .kernel = {3, 3}, .padding = around(1)});
            y = net.batch_norm(y, base + "bn2", kTorchEpsilon);
            if (stride != 1 || in != out) {
                x = net.conv(x, base + "downsample.0", {.in = in, .out = out, .stride = {stride, stride}});
                x = net.batch_norm(x, base + "downsample.1", kTorchEpsilon);
            }
            x = net.relu(net.add(x, y));
        }
    net.classifier(x, "fc", 512);
}

/// TensorFlow's SAME padding, the larger half behind.
Edges same(const Shape& x, std::int64_t kernel, std::int64_t stride) {
    const auto total = [&](std::int64_t in) {
        return std::max<std::int64_t>(0, ((in + stride - 1) / stride - 1) * stride + kernel - in);
    };
    const auto h = total(x[1]), w = total(x[2]);
    return {h / 2, w / 2, h - h / 2, w - w / 2};
}

/// Width and depth multipliers; stem and head keep their widths, first and last stage their depth.
void efficientnet_lite(Net& net, std::int64_t size, double width, double depth) {
    struct Stage {
        std::int64_t repeats, kernel, stride, expansion, channels;
    };
    constexpr Stage kStages[] = {{1, 3, 1, 1, 16},  {2, 3, 2, 6, 24},  {2, 5, 2, 6, 40}, {3, 3, 2, 6, 80},
                                 {3, 5, 1, 6, 112}, {4, 5, 2, 6, 192}, {1, 3, 1, 6, 320}};
    const auto scaled = [width](std::int64_t channels) {  // to a multiple of 8, never below nine tenths
        const double wanted = static_cast<double>(channels) * width;
        auto rounded = std::max<std::int64_t>(8, static_cast<std::int64_t>(wanted + 4) / 8 * 8);
        return static_cast<double>(rounded) < 0.9 * wanted ? rounded + 8 : rounded;
    };
    auto x = net.input(3, size, size);
    x = net.conv(x, "_conv_stem",
                 {.in = 3, .out = 32, .kernel = {3, 3}, .stride = {2, 2}, .padding = same(net.shape(x), 3, 2)});
    x = relu6(net, net.batch_norm(x, "_bn0", kEfficientNetEpsilon));
    int index = 0;
    for (std::size_t s = 0; s < std::size(kStages); ++s) {
        const Stage& stage = kStages[s];
        const bool edge = s == 0 || s + 1 == std::size(kStages);
        const auto repeats =
            edge ? stage.repeats : static_cast<std::int64_t>(std::ceil(depth * static_cast<double>(stage.repeats)));
        for (std::int64_t r = 0; r < repeats; ++r) {
            const auto in = net.channels(x), out = scaled(stage.channels), stride = r == 0 ? stage.stride : 1,
                       wide = in * stage.expansion;
            const std::string base = fmt::format("_blocks.{}.", index++);
            auto y = x;
            if (stage.expansion != 1) {
                y = net.conv(y, base + "_expand_conv", {.in = in, .out = wide});
                y = relu6(net, net.batch_norm(y, base + "_bn0", kEfficientNetEpsilon));
            }
            y = net.conv(y, base + "_depthwise_conv",
                         {.in = wide,
                          .out = wide,
                          .kernel = {stage.kernel, stage.kernel},
                          .stride = {stride, stride},
                          .padding = same(net.shape(y), stage.kernel, stride),
                          .groups = wide});
            y = relu6(net, net.batch_norm(y, base + "_bn1", kEfficientNetEpsilon));
            y = net.conv(y, base + "_project_conv", {.in = wide, .out = out});
            y = net.batch_norm(y, base + "_bn2", kEfficientNetEpsilon);
            x = stride == 1 && in == out ? net.add(y, x) : y;
        }
    }
    x = net.conv(x, "_conv_head", {.in = net.channels(x), .out = 1280});
    x = relu6(net, net.batch_norm(x, "_bn1", kEfficientNetEpsilon));
    net.classifier(x, "_fc", 1280);
}

void efficientnet_lite0(Net& net, std::int64_t size) {
    efficientnet_lite(net, size, 1.0, 1.0);
}
void efficientnet_lite1(Net& net, std::int64_t size) {
    efficientnet_lite(net, size, 1.0, 1.1);
}
void efficientnet_lite2(Net& net, std::int64_t size) {
    efficientnet_lite(net, size, 1.1, 1.2);
}

/// Keyword spotting on 49 frames of 10 coefficients.
void ds_cnn(Net& net, std::int64_t) {
    auto x = net.conv(net.input(1, 49, 10), "f.0",
                      {.in = 1, .out = 64, .kernel = {10, 4}, .stride = {2, 2}, .padding = {5, 1, 5, 1}});
    x = net.relu(net.batch_norm(x, "f.1", kTorchEpsilon));
    for (int index = 3; index < 27; index += 6) {
        x = net.conv(x, fmt::format("f.{}", index),
                     {.in = 64, .out = 64, .kernel = {3, 3}, .padding = around(1), .groups = 64});
        x = net.relu(net.batch_norm(x, fmt::format("f.{}", index + 1), kTorchEpsilon));
        x = net.conv(x, fmt::format("f.{}", index + 3), {.in = 64, .out = 64});
        x = net.relu(net.batch_norm(x, fmt::format("f.{}", index + 4), kTorchEpsilon));
    }
    net.classifier(x, "fc", 64);
}

struct Architecture {
    const char* name;
    void (*build)(Net&, std::int64_t size);
    std::int64_t size;
};
constexpr Architecture kArchitectures[] = {
    {"mobilenet_v2", mobilenet_v2, 224},
    {"efficientnet_lite0", efficientnet_lite0, 224},
    {"efficientnet_lite1", efficientnet_lite1, 240},
    {"efficientnet_lite2", efficientnet_lite2, 260},
    {"mobilenet_v1", mobilenet_v1, 224},
    {"resnet18", resnet18, 224},
    {"ds_cnn", ds_cnn, 0},
};

Result<Graph> build(const Architecture& a, const WeightsFile& weights, std::int64_t size) {
    Net net(weights, a.name);
    a.build(net, size > 0 ? size : a.size);
    return net.finish();
}

}  // namespace

std::vector<std::string> architectures() {
    std::vector<std::string> names;
    for (const Architecture& a : kArchitectures) names.emplace_back(a.name);
    return names;
}

Result<std::vector<Parameter>> parameters_of(const std::string& architecture, std::int64_t classes) {
    for (const Architecture& a : kArchitectures) {
        if (architecture != a.name) continue;
        const WeightsFile none;
        Net net(none, a.name);
        a.build(net, a.size);
        std::vector<Parameter> parameters;
        for (const auto& wanted : net.wanted()) {
            parameters.push_back({wanted.name, wanted.shape});
            for (auto& size : parameters.back().shape)
                if (size == Net::kAnySize) size = classes;
        }
        // The classifier's bias is as long as its weights, which are not there.
        parameters.back().shape[0] = classes;
        return parameters;
    }
    return host::failure(ErrorCode::NotFound, "there is no architecture '{}'", architecture);
}

Result<Graph> build_architecture(const std::string& architecture, const WeightsFile& weights, std::int64_t size) {
    if (size != 0 && (size < 16 || size > 4096))
        return host::failure(ErrorCode::InvalidArgument, "pictures of {} by {}: 16 to 4096 are possible", size, size);
    if (!architecture.empty()) {
        const auto found =
            std::ranges::find(kArchitectures, architecture, [](const Architecture& a) { return std::string(a.name); });
        if (found == std::end(kArchitectures))
            return std::unexpected(Error(ErrorCode::NotFound,
                                         fmt::format("there is no architecture '{}'", architecture),
                                         fmt::format("There are {}.", fmt::join(architectures(), ", "))));
        return build(*found, weights, size);
    }
    for (const Architecture& a : kArchitectures)
        if (auto graph = build(a, weights, size)) return graph;
    return std::unexpected(
        Error(ErrorCode::NotSupported, "a file of weights without a graph, and its names fit no known architecture",
              fmt::format(
                  "Name the architecture with --architecture to see what does not fit: {}. Other networks: export them "
                  "with torch.export.",
                  fmt::join(architectures(), ", "))));
}

}  // namespace talpa::compiler::import
