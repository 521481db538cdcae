// Float kernels against loops written straight from the definition, and small cases worked out by hand.
#include "compiler/floats/executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "compiler/floats/hot_kernels.h"

namespace talpa::compiler {
namespace {

Value real(const std::string& name, Shape shape) {
    return {.name = name, .shape = std::move(shape)};
}

Value constant(const std::string& name, Shape shape, const std::vector<float>& numbers) {
    auto value = real(name, std::move(shape));
    auto bytes = std::make_shared<Bytes>(numbers.size() * 4);
    std::memcpy(bytes->data(), numbers.data(), bytes->size());
    value.constant = bytes;
    return value;
}

std::vector<float> random_numbers(std::mt19937& random, std::int64_t count) {
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<float> numbers(static_cast<std::size_t>(count));
    for (auto& x : numbers) x = uniform(random);
    return numbers;
}

std::vector<float> run(const Graph& graph, const std::vector<std::vector<float>>& inputs) {
    auto executor = FloatExecutor::create(graph);
    EXPECT_TRUE(executor) << executor.error().describe();
    FloatExecutor::Workspace workspace;
    auto outputs = executor->run(inputs, workspace);
    EXPECT_TRUE(outputs) << outputs.error().describe();
    return (*outputs)[0];
}

/// A graph of one node over one input.
std::vector<float> run_one(Op op, const Shape& in, const std::vector<float>& x, Attributes attributes, const Shape& out,
                           std::vector<Value> more = {}) {
    Graph g;
    g.inputs = {g.add_value(real("x", in))};
    auto operands = g.inputs;
    for (auto& value : more) operands.push_back(g.add_value(std::move(value)));
    g.outputs = {g.add_node(op, operands, std::move(attributes), real("y", out))};
    return run(g, {x});
}

TEST(FloatConvolution, EqualsTheDefinitionOnRandomGeometry) {
    std::mt19937 random(7);
    const auto pick = [&](int a, int b) {
        return std::int64_t{a} + static_cast<std::int64_t>(random() % (b - a + 1u));
    };
    for (int round = 0; round < 120; ++round) {
        const std::int64_t groups = round % 4 == 0 ? pick(2, 20) : round % 4 == 1 ? 2 : 1;
        const std::int64_t depth = round % 4 == 0 ? 1 : pick(1, 9), per_group = round % 8 == 4   ? 2
                                                                                : round % 4 == 0 ? 1
                                                                                                 : pick(1, 40);
        const ConvAttr conv{.stride = {pick(1, 3), pick(1, 3)},
                            .dilation = {pick(1, 2), pick(1, 2)},
                            .padding = {pick(0, 2), pick(0, 2), pick(0, 2), pick(0, 2)},
                            .groups = groups,
                            .clamp = {-1.0, 1.5}};
        const Shape weight{groups * per_group, pick(1, 4), pick(1, 4), depth};
        const Shape in{pick(1, 2), pick(8, 14), pick(8, 14), depth * groups};
        const auto size = [&](int d) {
            const std::int64_t pads =
                d == 0 ? conv.padding.top + conv.padding.bottom : conv.padding.left + conv.padding.right;
            const auto i = static_cast<std::size_t>(d);
            return (in[i + 1] + pads - conv.dilation[i] * (weight[i + 1] - 1) - 1) / conv.stride[i] + 1;
        };
        const Shape out{in[0], size(0), size(1), weight[0]};
        const auto x = random_numbers(random, element_count(in)), w = random_numbers(random, element_count(weight)),
                   b = random_numbers(random, weight[0]);
        const auto y = run_one(Op::Conv2d, in, x, conv, out, {constant("w", weight, w), constant("b", {weight[0]}, b)});
        std::size_t i = 0;
        for (std::int64_t n = 0; n < out[0]; ++n)
            for (std::int64_t oy = 0; oy < out[1]; ++oy)
                for (std::int64_t ox = 0; ox < out[2]; ++ox)
                    for (std::int64_t o = 0; o < out[3]; ++o, ++i) {
                        double sum = b[static_cast<std::size_t>(o)];
                        for (std::int64_t ky = 0; ky < weight[1]; ++ky)
                            for (std::int64_t kx = 0; kx < weight[2]; ++kx)
                                for (std::int64_t c = 0; c < depth; ++c) {
                                    const auto iy = oy * conv.stride[0] - conv.padding.top + ky * conv.dilation[0];
                                    const auto ix = ox * conv.stride[1] - conv.padding.left + kx * conv.dilation[1];
                                    if (iy < 0 || iy >= in[1] || ix < 0 || ix >= in[2]) continue;
                                    const auto from =
                                        ((n * in[1] + iy) * in[2] + ix) * in[3] + o / per_group * depth + c;
                                    const auto at = ((o * weight[1] + ky) * weight[2] + kx) * depth + c;
                                    sum += static_cast<double>(x[static_cast<std::size_t>(from)]) *
                                           static_cast<double>(w[static_cast<std::size_t>(at)]);
                                }
                        ASSERT_NEAR(y[i], std::clamp(sum, -1.0, 1.5), 2e-5) << "round " << round << " element " << i;
                    }
    }
}

TEST(FloatConvolution, EveryInstructionSetAgrees) {
    std::mt19937 random(3);
    std::vector<const HotKernels*> sets{&kHotGeneric};
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) sets.push_back(&kHotAvx2);
    if (__builtin_cpu_supports("avx512f")) sets.push_back(&kHotAvx512);
#endif
    for (std::size_t rows = 1; rows < 40; rows += 3) {
        const std::size_t k = 1 + rows * 2, n = 5 + rows, panels = (n + 15) / 16 * 16 * k;
        const auto a = random_numbers(random, static_cast<std::int64_t>(rows * k));
        const auto b = random_numbers(random, static_cast<std::int64_t>(panels));
        const auto bias = random_numbers(random, static_cast<std::int64_t>(n));
        std::vector<float> first(rows * n), other(rows * n);
        kHotGeneric.gemm(a.data(), k, rows, k, b.data(), n, bias.data(), first.data(), n, -3, 3);
        for (const auto* set : sets) {
            set->gemm(a.data(), k, rows, k, b.data(), n, bias.data(), other.data(), n, -3, 3);
            for (std::size_t i = 0; i < first.size(); ++i) ASSERT_NEAR(first[i], other[i], 1e-4) << set->name;
            float least = 0, most = 0;
            set->range(a.data(), a.size(), least, most);
            EXPECT_EQ(least, *std::ranges::min_element(a)) << set->name;
            EXPECT_EQ(most, *std::ranges::max_element(a)) << set->name;
        }
    }
}

TEST(FloatKernels, TransposedConvolutionIsTheConvolutionsAdjoint) {
    // <conv(x), y> = <x, conv_transpose(y)>: the definition of the transposed operator.
    std::mt19937 random(11);
    const ConvAttr conv{.stride = {2, 1}, .padding = {1, 0, 1, 0}};
    const Shape in{1, 8, 6, 3}, weight{4, 3, 2, 3}, out{1, 4, 5, 4};
    const auto x = random_numbers(random, element_count(in)), w = random_numbers(random, element_count(weight)),
               y = random_numbers(random, element_count(out));
    std::vector<float> swapped(w.size());  // I and O exchanged
    for (std::size_t o = 0; o < 4; ++o)
        for (std::size_t t = 0; t < 6; ++t)
            for (std::size_t i = 0; i < 3; ++i) swapped[(i * 6 + t) * 4 + o] = w[(o * 6 + t) * 3 + i];
    auto back = conv;
    back.output_padding = {1, 0};
    const auto forward = run_one(Op::Conv2d, in, x, conv, out, {constant("w", weight, w)});
    const auto adjoint = run_one(Op::ConvTranspose2d, out, y, back, in, {constant("w", {3, 3, 2, 4}, swapped)});
    double left = 0, right = 0;
    for (std::size_t i = 0; i < y.size(); ++i) left += static_cast<double>(forward[i]) * static_cast<double>(y[i]);
    for (std::size_t i = 0; i < x.size(); ++i) right += static_cast<double>(adjoint[i]) * static_cast<double>(x[i]);
    EXPECT_NEAR(left, right, 1e-4);
}

TEST(FloatKernels, SmallCasesByHand) {
    using V = std::vector<float>;
    const PoolAttr pool{.kernel = {2, 2}, .stride = {2, 2}, .padding = {0, 0, 1, 1}};
    EXPECT_EQ(run_one(Op::MaxPool2d, {1, 3, 3, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9}, pool, {1, 2, 2, 1}), (V{5, 6, 8, 9}));
    EXPECT_EQ(run_one(Op::AvgPool2d, {1, 3, 3, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9}, pool, {1, 2, 2, 1}),
              (V{3, 4.5f, 7.5f, 9}));
    auto counting = pool;
    counting.count_include_pad = true;
    EXPECT_EQ(run_one(Op::AvgPool2d, {1, 3, 3, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9}, counting, {1, 2, 2, 1}),
              (V{3, 2.25f, 3.75f, 2.25f}));
    EXPECT_EQ(run_one(Op::Mean, {1, 2, 2, 2}, {1, 10, 2, 20, 3, 30, 4, 40}, ReduceAttr{{1, 2}, false}, {1, 2}),
              (V{2.5f, 25}));
    EXPECT_EQ(run_one(Op::ReduceMax, {2, 3}, {1, 5, 2, 7, 0, 3}, ReduceAttr{{1}, true}, {2, 1}), (V{5, 7}));
    EXPECT_EQ(run_one(Op::ArgMax, {2, 3}, {1, 5, 5, 7, 0, 3}, ReduceAttr{{1}, false}, {2}), (V{1, 0}));
    EXPECT_EQ(run_one(Op::CumSum, {2, 2}, {1, 2, 3, 4}, ReduceAttr{{0}, true}, {2, 2}), (V{1, 2, 4, 6}));
    EXPECT_EQ(run_one(Op::Permute, {1, 2, 3}, {1, 2, 3, 4, 5, 6}, PermuteAttr{{2, 0, 1}}, {3, 1, 2}),
              (V{1, 4, 2, 5, 3, 6}));
    EXPECT_EQ(run_one(Op::Slice, {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}, SliceAttr{{0, 3}, {2, 0}, {1, -2}}, {2, 2}),
              (V{4, 2, 8, 6}));
    EXPECT_EQ(run_one(Op::Pad, {3}, {1, 2, 3}, PadAttr{PadAttr::Mode::Reflect, {2}, {1}}, {6}), (V{3, 2, 1, 2, 3, 2}));
    EXPECT_EQ(run_one(Op::Pad, {3}, {1, 2, 3}, PadAttr{PadAttr::Mode::Constant, {1}, {1}, 9}, {5}), (V{9, 1, 2, 3, 9}));
    EXPECT_EQ(run_one(Op::Add, {2, 2}, {1, 2, 3, 4}, BinaryAttr{{-100, 13}}, {2, 2}, {constant("b", {2}, {10, 20})}),
              (V{11, 13, 13, 13}));
    EXPECT_EQ(
        run_one(Op::Prelu, {2, 2}, {-4, -1, 1, 4}, BinaryAttr{{-1, 2}}, {2, 2}, {constant("b", {2}, {0.5, 0.25})}),
        (V{-1, -0.25, 1, 2}));
    EXPECT_EQ(
        run_one(Op::Resize, {1, 1, 2, 1}, {0, 4}, ResizeAttr{ResizeAttr::Mode::Bilinear, false, true}, {1, 1, 4, 1}),
        (V{0, 1, 3, 4}));
    EXPECT_EQ(run_one(Op::Resize, {1, 1, 2, 1}, {0, 4}, ResizeAttr{}, {1, 1, 4, 1}), (V{0, 0, 4, 4}));
    EXPECT_EQ(run_one(Op::Expand, {1, 2}, {1, 2}, NoAttr{}, {2, 2}), (V{1, 2, 1, 2}));
    EXPECT_EQ(run_one(Op::Gather, {3, 2}, {1, 2, 3, 4, 5, 6}, AxisAttr{0}, {2, 2}, {constant("i", {2}, {2, 0})}),
              (V{5, 6, 1, 2}));
    EXPECT_EQ(run_one(Op::HardSwish, {3}, {-4, 1.5f, 5}, UnaryAttr{}, {3}), (V{-0.0f, 1.125f, 5}));
    EXPECT_EQ(run_one(Op::Concat, {2, 1}, {1, 2}, AxisAttr{1}, {2, 3}, {constant("b", {2, 2}, {3, 4, 5, 6})}),
              (V{1, 3, 4, 2, 5, 6}));
    const auto p = run_one(Op::Softmax, {1, 2}, {0, std::log(3.0f)}, AxisAttr{1}, {1, 2});
    EXPECT_NEAR(p[0], 0.25, 1e-6);
    EXPECT_NEAR(p[1], 0.75, 1e-6);
    const auto normal = run_one(Op::LayerNorm, {1, 2}, {1, 3}, NormAttr{0.0, 1, {1}}, {1, 2});
    EXPECT_NEAR(normal[0], -1, 1e-6);
    const auto product =
        run_one(Op::MatMul, {2, 1, 2}, {1, 2, 3, 4}, NoAttr{}, {2, 1, 1}, {constant("b", {2, 1}, {10, 1})});
    EXPECT_EQ(product, (V{12, 34}));
}

TEST(FloatExecutor, DequantizesConstantsPerChannel) {
    auto weight = real("w", {2, 2});
    weight.quantization =
        Quantization{.type = DType::Int8, .scales = {0.5, 2.0}, .zero_points = {0, 1}, .axis = 0, .min = -127};
    weight.constant = std::make_shared<Bytes>(Bytes{2, 0xFE, 3, 1});
    EXPECT_EQ(*real_values(weight), (std::vector<float>{1, -1, 4, 0}));
    weight.constant = std::make_shared<Bytes>(Bytes{2});
    EXPECT_FALSE(real_values(weight));
}

TEST(FloatExecutor, ShowsEveryValueAndRefusesWrongInputs) {
    Graph g;
    g.inputs = {g.add_value(real("x", {2}))};
    const auto square = g.add_node(Op::Square, g.inputs, NoAttr{}, real("square", {2}));
    g.outputs = {g.add_node(Op::Neg, {square}, NoAttr{}, real("y", {2}))};
    auto executor = FloatExecutor::create(g);
    ASSERT_TRUE(executor);
    FloatExecutor::Workspace workspace;
    std::vector<std::pair<ValueId, float>> seen;
    const std::vector<std::vector<float>> inputs{{2, 3}};
    for (int i = 0; i < 2; ++i) {
        seen.clear();
        const auto out = executor->run(inputs, workspace,
                                       [&](ValueId id, std::span<const float> v) { seen.emplace_back(id, v[1]); });
        ASSERT_TRUE(out);
        EXPECT_EQ((*out)[0], (std::vector<float>{-4, -9}));
        EXPECT_EQ(seen, (std::vector<std::pair<ValueId, float>>{{0, 3}, {1, 9}, {2, -9}}));
    }
    const std::vector<std::vector<float>> wrong{{1}};
    const auto refused = executor->run(wrong, workspace);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message, "input 'x' has 2 elements, 1 were given");
}

}  // namespace
}  // namespace talpa::compiler
