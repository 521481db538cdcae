// What the graph's own small functions promise.
#include "compiler/graph/graph.h"

#include <gtest/gtest.h>

namespace talpa::compiler {
namespace {

TEST(Graph, NamesEveryOperatorAndType) {
    EXPECT_STREQ(op_name(Op::Conv2d), "conv2d");
    EXPECT_STREQ(op_name(Op::ClampOp), "clamp");
    EXPECT_STREQ(op_name(Op::Softmax), "softmax");
    EXPECT_STREQ(op_name(Op::Requantize), "requantize");
    EXPECT_STREQ(dtype_name(DType::Int16), "int16");
    EXPECT_EQ(dtype_size(DType::Int64), 8u);
}

TEST(Graph, FindsProducersAndReadersOnce) {
    Graph g;
    const auto x = g.add_value({.name = "x", .shape = {1, 4}});
    g.inputs = {x};
    const auto square = g.add_node(Op::Mul, {x, x}, BinaryAttr{}, {.name = "square", .shape = {1, 4}});
    const auto sum = g.add_node(Op::Add, {square, x}, BinaryAttr{}, {.name = "sum", .shape = {1, 4}});
    g.outputs = {sum};
    const auto uses = find_uses(g);
    EXPECT_EQ(uses.producer[x], -1);
    EXPECT_EQ(uses.producer[sum], 1);
    EXPECT_EQ(uses.readers[x], (std::vector<std::uint32_t>{0, 1}));
    EXPECT_TRUE(uses.readers[sum].empty());
    EXPECT_EQ(element_count(g[sum].shape), 4);
    EXPECT_EQ(element_count({}), 1);
}

}  // namespace
}  // namespace talpa::compiler
