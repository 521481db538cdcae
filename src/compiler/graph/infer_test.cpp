// Shapes and attributes of strangers: sizes of nothing, strides and slices near the largest number, NaN. Each is an
// error with a reason, or a shape that is right; nothing overflows on the way (the sanitizers look).
#include "compiler/graph/infer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "compiler/graph/builder.h"
#include "compiler/graph/check.h"
#include "compiler/graph/constant.h"

namespace talpa::compiler {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kHuge = INT64_MAX;

std::string outcome(Op op, const Attributes& attributes, const std::vector<Shape>& operands, const Shape& asked = {}) {
    Graph g;
    std::vector<ValueId> ids;
    for (const Shape& s : operands) ids.push_back(g.add_value({.name = "v" + std::to_string(ids.size()), .shape = s}));
    if (op == Op::Conv2d || op == Op::ConvTranspose2d || op == Op::FullyConnected) ids.resize(3, kNoValue);
    const auto shape = infer_shape(g, op, attributes, ids, asked);
    return shape ? shape_text(*shape) : shape.error().describe();
}

TEST(InferShape, RefusesToComputeWithNothing) {
    EXPECT_THAT(outcome(Op::Conv2d, ConvAttr{}, {{1, 4, 4, 0}, {8, 1, 1, 0}}), HasSubstr("has no elements"));
    EXPECT_THAT(outcome(Op::FullyConnected, FullyConnectedAttr{}, {{1, 0}, {8, 0}}), HasSubstr("has no elements"));
    EXPECT_THAT(outcome(Op::MatMul, NoAttr{}, {{3, 0}, {0, 5}}), HasSubstr("has no elements"));
    EXPECT_THAT(outcome(Op::MaxPool2d, PoolAttr{}, {{1, 0, 4, 8}}), HasSubstr("has no elements"));
    EXPECT_THAT(outcome(Op::Resize, ResizeAttr{}, {{1, 0, 0, 8}}, {1, 4, 4, 8}), HasSubstr("has no elements"));
    EXPECT_THAT(outcome(Op::Softmax, AxisAttr{.axis = 1}, {{1, 0}}), HasSubstr("has no elements"));
    EXPECT_THAT(outcome(Op::Mean, ReduceAttr{.axes = {1}}, {{1, 0, 2}}), HasSubstr("elements"));
    // Shape arithmetic moves empty lists.
    EXPECT_EQ(outcome(Op::Concat, AxisAttr{.axis = 0}, {{0}, {2}}), "[2]");
}

TEST(InferShape, KeepsCountOfDimensionsBesideOneOfNone) {
    const std::int64_t half = std::int64_t{1} << 39;
    EXPECT_THAT(outcome(Op::Expand, NoAttr{}, {{0, 1, 1}}, {0, half, half}), HasSubstr("too large"));
    EXPECT_THAT(outcome(Op::Reshape, NoAttr{}, {{8, 4}}, {8, std::int64_t{1} << 62}), HasSubstr("cannot become"));
}

TEST(InferShape, SlicesByTheLargestStep) {
    EXPECT_EQ(outcome(Op::Slice, SliceAttr{{0}, {10}, {kHuge}}, {{10}}), "[1]");
    EXPECT_EQ(outcome(Op::Slice, SliceAttr{{9}, {-1}, {-4}}, {{10}}), "[3]");
    EXPECT_EQ(outcome(Op::Slice, SliceAttr{{1}, {10}, {4}}, {{10}}), "[3]");
    EXPECT_EQ(outcome(Op::Slice, SliceAttr{{4}, {4}, {kHuge}}, {{10}}), "[0]");
    EXPECT_THAT(outcome(Op::Slice, SliceAttr{{0}, {10}, {0}}, {{10}}), HasSubstr("slice 0:10:0"));
}

TEST(InferShape, RefusesKernelsThatReachBeyondEverything) {
    const Shape x{1, 8, 8, 4}, w{4, 3, 3, 4};
    ConvAttr attr;
    attr.dilation = {kHuge / 4, 1};
    EXPECT_THAT(outcome(Op::Conv2d, attr, {x, w}), HasSubstr("height"));
    EXPECT_THAT(outcome(Op::ConvTranspose2d, attr, {x, w}), HasSubstr("height"));
    attr = {};
    attr.stride = {0, 1};
    EXPECT_THAT(outcome(Op::ConvTranspose2d, attr, {x, w}), HasSubstr("must be positive"));
    attr = {};
    attr.padding.left = kHuge;
    EXPECT_THAT(outcome(Op::Conv2d, attr, {x, w}), HasSubstr("width"));
    PoolAttr pool;
    pool.divisor = std::int64_t{1} << 32;  // 0 in 32 bits
    EXPECT_THAT(outcome(Op::AvgPool2d, pool, {x}), HasSubstr("divisor"));
}

TEST(InferShape, RefusesAttributesThatAreNoNumbers) {
    const Shape x{1, 4};
    EXPECT_THAT(outcome(Op::LeakyRelu, UnaryAttr{.alpha = NAN}, {x}), HasSubstr("alpha is not a number"));
    EXPECT_THAT(outcome(Op::Softplus, UnaryAttr{.beta = INFINITY}, {x}), HasSubstr("beta is infinite"));
    EXPECT_THAT(outcome(Op::ClampOp, UnaryAttr{.clamp = {NAN, 1}}, {x}), HasSubstr("clamps to"));
    EXPECT_THAT(outcome(Op::Softmax, AxisAttr{.axis = 1, .beta = -1}, {x}), HasSubstr("must be positive"));
    EXPECT_THAT(outcome(Op::LayerNorm, NormAttr{.epsilon = NAN, .axes = {1}}, {x, {4}, {4}}), HasSubstr("epsilon"));
    EXPECT_EQ(outcome(Op::ClampOp, UnaryAttr{.clamp = {0, INFINITY}}, {x}), "[1, 4]");
}

TEST(Fold, OfNothingTakesNoTime) {
    Graph g;
    Builder b(g);
    const std::int64_t rows = std::int64_t{1} << 39;
    const auto none = b.value({.name = "none", .shape = {rows, 0}, .constant = std::make_shared<const Bytes>()});
    const auto both = b.add(Op::Concat, {none, none}, AxisAttr{.axis = 1}, "both");
    ASSERT_TRUE(both.has_value()) << both.error().describe();
    const auto index = b.value(int64_constant("index", {0}, {}));
    EXPECT_TRUE(b.add(Op::Gather, {none, index}, AxisAttr{.axis = 1}, "picked").has_value());
}

TEST(Fold, WhatIsNoNumberIsNotFolded) {
    Graph g;
    Builder b(g);
    const float minus = -1;
    const auto c = b.value(float_constant("c", {1}, {&minus, 1}));
    const auto root = b.add(Op::Sqrt, {c}, UnaryAttr{}, "root");
    ASSERT_TRUE(root.has_value());
    EXPECT_FALSE(g[*root].is_constant());
}

TEST(Fold, ChannelsThatAreTurnedAroundLoseTheirScales) {
    Graph g;
    Builder b(g);
    Quantization q{.type = DType::Int8, .scales = {0.1, 0.2, 0.3}, .zero_points = {0, 0, 0}, .axis = 0};
    const auto w = b.value({.name = "w",
                            .shape = {3, 2},
                            .quantization = q,
                            .constant = std::make_shared<const Bytes>(Bytes{1, 2, 3, 4, 5, 6})});
    EXPECT_FALSE(b.add(Op::Slice, {w}, SliceAttr{{2, 0}, {-1, 2}, {-1, 1}}, "turned").has_value());
    EXPECT_TRUE(b.add(Op::Slice, {w}, SliceAttr{{0, 1}, {3, 2}, {1, 1}}, "column").has_value());
}

TEST(CheckGraph, RefusesValuesWithoutElementsScalesOrNumbers) {
    const auto with = [](const Shape& shape) {
        Graph g;
        g.inputs = {g.add_value({.name = "x", .shape = shape})};
        g.outputs = {g.add_node(Op::Abs, {g.inputs[0]}, UnaryAttr{}, {.name = "y", .shape = shape}, {})};
        const auto checked = check_graph(g);
        return checked ? std::string("sound") : checked.error().describe();
    };
    EXPECT_EQ(with({1, 4}), "sound");
    EXPECT_THAT(with({1, 0}), HasSubstr("has no elements"));
    EXPECT_FALSE(check_quantization({.type = DType::Int8, .scales = {}, .zero_points = {}, .axis = 0}, {0, 4}));

    Graph g;
    const float nan = NAN;
    g.inputs = {g.add_value({.name = "x", .shape = {1}})};
    const auto c = g.add_value(float_constant("c", {1}, {&nan, 1}));
    g.outputs = {g.add_node(Op::Add, {g.inputs[0], c}, BinaryAttr{}, {.name = "y", .shape = {1}}, {})};
    EXPECT_THAT(check_graph(g).error().describe(), HasSubstr("not a number"));
}

}  // namespace
}  // namespace talpa::compiler
