// What a target's memory cannot hold is an error with numbers; the same graph gives the same bytes each time.
#include <gtest/gtest.h>

#include "compiler/backend/random_graph_for_test.h"
#include "compiler/backend/run_for_test.h"

namespace talpa::compiler {
namespace {

// One table over a map of 20,000 bytes: input, and output of the same size.
Graph sigmoid_of_20000() {
    Graph g;
    Value in, out;
    in.name = "in";
    in.shape = out.shape = {1, 100, 100, 2};
    Quantization q;
    q.scales = {0.05};
    q.zero_points = {0};
    in.quantization = out.quantization = q;
    out.name = "out";
    g.inputs = {g.add_value(in)};
    g.outputs = {g.add_node(Op::Sigmoid, {g.inputs[0]}, UnaryAttr{}, out, Source{"sigmoid", "", "", ""})};
    return g;
}

TEST(MemoryLimit, IsAnErrorThatNamesRequiredAndAvailableBytes) {
    CompileOptions options;
    options.target = make_target("ethos-u65-256", "High_End", MemoryMode::SharedSram, 30'000).value();
    const auto refused = compile(sigmoid_of_20000(), options);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::OutOfResources);
    EXPECT_NE(refused.error().message.find("40000 bytes of SRAM are required, 30000 are available"), std::string::npos)
        << refused.error().message;
    options.target = make_target("ethos-u65-256", "High_End", MemoryMode::SharedSram, 40'960).value();
    EXPECT_TRUE(compile(sigmoid_of_20000(), options).has_value());
    // Where there is a slower memory behind it, it takes what does not fit.
    options.target = make_target("ethos-u65-256", "High_End", MemoryMode::DedicatedSram, 4096).value();
    const auto spilled = compile(sigmoid_of_20000(), options);
    ASSERT_TRUE(spilled.has_value());
    EXPECT_LE(spilled->report.delegates[0].fast_bytes, 4096u);
}

TEST(Compiled, BytesAreTheSameEachTime) {
    for (std::uint32_t seed = 1; seed < 20; ++seed) {
        const Graph graph = testing::RandomGraph(seed).make();
        EXPECT_EQ(compile(graph)->pte, compile(graph)->pte) << seed;
    }
}

}  // namespace
}  // namespace talpa::compiler
