// Operators that are sound and yet would take a million operations, a map beyond the registers or a bias beyond its
// record: each is refused by name and at once, before anything is unrolled.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/core/byte_reader.h"
#include "compiler/backend/compile.h"
#include "compiler/graph/infer.h"
#include "compiler/lower/lowering.h"

namespace talpa::compiler {
namespace {

using ::testing::HasSubstr;

Quantization int8_of(double scale) {
    Quantization q;
    q.scales = {scale};
    q.zero_points = {0};
    return q;
}

ValueId weights(Graph& g, const Shape& shape) {
    return g.add_value({.name = "w",
                        .shape = shape,
                        .quantization = int8_of(0.01),
                        .constant = std::make_shared<const Bytes>(static_cast<std::size_t>(element_count(shape)), 1)});
}

/// Why the NPU does not take the operator over an input of that shape.
std::string obstacle(Op op, const Attributes& attributes, const Shape& input, const Shape& weight = {}) {
    Graph g;
    g.inputs = {g.add_value({.name = "x", .shape = input, .quantization = int8_of(0.05)})};
    std::vector<ValueId> operands{g.inputs[0]};
    if (!weight.empty()) operands.insert(operands.end(), {weights(g, weight), kNoValue});
    const auto shape = infer_shape(g, op, attributes, operands);
    if (!shape) return shape.error().describe();
    g.outputs = {g.add_node(op, operands, attributes, {.name = "y", .shape = *shape, .quantization = int8_of(0.05)},
                            Source{"the node", "", "", ""})};
    const auto why = npu_obstacle(g, g.nodes[0]);
    if (why) return *why;
    const auto compiled = compile(g);
    return compiled ? "compiled" : compiled.error().describe();
}

TEST(AbsurdSizes, AreRefusedBeforeTheyAreUnrolled) {
    ConvAttr far;
    far.stride = {1 << 20, 1 << 20};
    EXPECT_THAT(obstacle(Op::ConvTranspose2d, far, {1, 1, 1, 4}, {4, 1, 1, 4}), HasSubstr("its stride is"));
    EXPECT_THAT(obstacle(Op::ConvTranspose2d, ConvAttr{.stride = {40, 40}}, {100, 1, 1, 4}, {4, 1, 1, 4}),
                HasSubstr("would take 160000 operations"));
    EXPECT_THAT(obstacle(Op::MaxPool2d, PoolAttr{}, {1 << 20, 1, 1, 1}), HasSubstr("a batch of 1048576"));
    EXPECT_THAT(obstacle(Op::Mean, ReduceAttr{.axes = {1}}, {1 << 20, 2, 4}), HasSubstr("would take 1048576"));
    EXPECT_THAT(obstacle(Op::Pad, PadAttr{PadAttr::Mode::Replicate, {0, 1 << 20}, {0, 0}}, {1, 4}),
                HasSubstr("repeats 1048576 rows"));
    EXPECT_THAT(obstacle(Op::Abs, UnaryAttr{}, {1 << 20, 1 << 15}), HasSubstr("elements"));
    EXPECT_THAT(obstacle(Op::Softmax, AxisAttr{.axis = 1, .beta = 1e30}, {1, 10}), HasSubstr("too far apart"));
    // A matrix of more rows than the registers count.
    EXPECT_THAT(obstacle(Op::FullyConnected, FullyConnectedAttr{}, {70'000, 4}, {4, 4}),
                HasSubstr("at most 65536 each is possible"));
}

TEST(AbsurdSizes, WindowsOfPaddingAloneAreNotTheNpus) {
    PoolAttr pool;
    pool.kernel = {3, 3};
    pool.padding.bottom = 3;
    EXPECT_THAT(obstacle(Op::MaxPool2d, pool, {1, 3, 8, 4}), HasSubstr("nothing but padding"));
    pool.padding.bottom = 2;
    EXPECT_EQ(obstacle(Op::MaxPool2d, pool, {1, 3, 8, 4}), "compiled");
}

TEST(AbsurdSizes, ABiasBeyondItsRecordIsRefused) {
    constexpr std::int64_t kHalf = std::int64_t{1} << 39;
    for (const auto& [number, fits] :
         {std::pair{kHalf - 1, true}, {kHalf, false}, {-kHalf / 2, true}, {std::int64_t{INT64_MIN}, false}}) {
        Bytes bytes(8);
        store_le(bytes.data(), number);
        Graph g;
        g.inputs = {g.add_value({.name = "x", .shape = {1, 4}, .quantization = int8_of(0.05)})};
        const ValueId w = weights(g, {1, 4});
        const ValueId bias = g.add_value({.name = "b",
                                          .shape = {1},
                                          .type = DType::Int64,
                                          .constant = std::make_shared<const Bytes>(std::move(bytes))});
        g.add_node(Op::FullyConnected, {g.inputs[0], w, bias}, FullyConnectedAttr{},
                   {.name = "y", .shape = {1, 1}, .quantization = int8_of(0.05)}, {});
        EXPECT_EQ(!npu_obstacle(g, g.nodes[0]).has_value(), fits) << number;
    }
}

}  // namespace
}  // namespace talpa::compiler
