// What runs as CPU operators, in programs of float numbers, against the float executor: layouts and groups that
// ExecuTorch's operators see otherwise than the graph does.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "compiler/backend/run_for_test.h"
#include "compiler/floats/executor.h"
#include "compiler/graph/builder.h"
#include "compiler/graph/constant.h"
#include "compiler/graph/infer.h"

namespace talpa::compiler {
namespace {

class Network {
  public:
    ValueId input(const Shape& shape) {
        const auto id = graph.add_value({.name = "x" + std::to_string(graph.inputs.size()), .shape = shape});
        graph.inputs.push_back(id);
        return id;
    }
    ValueId constant(const Shape& shape) {
        return graph.add_value(float_constant("c" + std::to_string(graph.values.size()), shape, numbers(shape)));
    }
    ValueId add(Op op, const std::vector<ValueId>& operands, const Attributes& attributes) {
        const auto shape = infer_shape(graph, op, attributes, operands);
        EXPECT_TRUE(shape.has_value()) << shape.error().describe();
        return graph.add_node(op, operands, attributes,
                              {.name = "v" + std::to_string(graph.values.size()), .shape = shape.value_or(Shape{})},
                              Source{"node", "", "", ""});
    }
    std::vector<float> numbers(const Shape& shape) {
        std::vector<float> out(static_cast<std::size_t>(element_count(shape)));
        for (float& x : out) x = std::uniform_real_distribution<float>(-2, 2)(random_);
        return out;
    }
    Graph graph;

  private:
    std::mt19937 random_{7};
};

/// Compiled, run and computed by the float executor. An output that is quantized may be a step off.
void expect_the_same(Network& net, ValueId out) {
    net.graph.outputs = {out};
    std::vector<std::vector<float>> sample;
    std::vector<std::vector<std::uint8_t>> inputs;
    for (const ValueId id : net.graph.inputs) {
        sample.push_back(net.numbers(net.graph[id].shape));
        auto& bytes = inputs.emplace_back(sample.back().size() * sizeof(float));
        std::memcpy(bytes.data(), sample.back().data(), bytes.size());
    }
    const auto executor = FloatExecutor::create(net.graph, Rounding::Quantized);
    ASSERT_TRUE(executor.has_value()) << executor.error().describe();
    FloatExecutor::Workspace workspace;
    const auto wanted = executor->run(sample, workspace);
    ASSERT_TRUE(wanted.has_value()) << wanted.error().describe();
    const auto result = testing::compile_and_run(net.graph, inputs);
    ASSERT_TRUE(result.has_value()) << result.error().describe();
    const Value& v = net.graph[out];
    const auto& bytes = result->outputs[0];
    ASSERT_EQ(bytes.size(), (*wanted)[0].size() * dtype_size(v.stored_type()));
    for (std::size_t i = 0; i < (*wanted)[0].size(); ++i) {
        float got = 0, near = 2e-5F;
        if (v.quantization) {
            const auto& q = *v.quantization;
            near = 1.01F * static_cast<float>(q.scales[0]);
            got = static_cast<float>(static_cast<std::int8_t>(bytes[i]) - q.zero_points[0]) *
                  static_cast<float>(q.scales[0]);
        } else {
            std::memcpy(&got, bytes.data() + i * sizeof got, sizeof got);
        }
        ASSERT_NEAR(got, (*wanted)[0][i], near * (1 + std::fabs((*wanted)[0][i]))) << "element " << i;
    }
}

TEST(CpuOperators, TransposedConvolutionOfGroups) {
    Network net;
    const ValueId x = net.input({1, 5, 4, 6});
    ConvAttr a{.stride = {2, 3}, .padding = {1, 0, 1, 0}, .groups = 2, .output_padding = {1, 0}};
    expect_the_same(net, net.add(Op::ConvTranspose2d, {x, net.constant({4, 3, 2, 3}), net.constant({4})}, a));
}

TEST(CpuOperators, GroupNorm) {
    Network net;
    const ValueId x = net.input({2, 5, 4, 6});
    NormAttr a{.groups = 3};
    expect_the_same(net, net.add(Op::GroupNorm, {x, net.constant({6}), net.constant({6})}, a));
}

TEST(CpuOperators, SlopesOfChannels) {
    Network net;
    const ValueId x = net.input({1, 5, 4, 6});
    expect_the_same(net, net.add(Op::Prelu, {x, net.constant({6})}, BinaryAttr{}));
}

TEST(CpuOperators, MatricesInBatchesOfBatches) {
    Network net;
    const ValueId x = net.input({1, 2, 3, 4}), y = net.input({1, 2, 4, 5});
    expect_the_same(net, net.add(Op::MatMul, {x, y}, NoAttr{}));
}

// Real numbers in, integers out: what moves must be quantized on the way.
TEST(CpuOperators, MovesIntoAnotherScale) {
    const auto quantized = [](Network& net, ValueId id) {
        Quantization q;
        q.scales = {0.02};
        q.zero_points = {-7};
        net.graph[id].quantization = q;
        return id;
    };
    const auto moves = [&](Op op, const Attributes& attributes) {
        Network net;
        const ValueId x = net.input({1, 5, 4, 6});
        expect_the_same(net, quantized(net, net.add(op, {x}, attributes)));
    };
    moves(Op::Slice, SliceAttr{{0, 1, 0, 0}, {1, 5, 3, 6}, {1, 2, 1, 1}});
    moves(Op::Permute, PermuteAttr{{0, 3, 1, 2}});
}

}  // namespace
}  // namespace talpa::compiler
