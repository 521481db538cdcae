// What a target's memory cannot hold is an error with numbers; the same graph gives the same bytes each time.
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/backend/mobilenet_for_test.h"
#include "compiler/backend/random_graph_for_test.h"
#include "compiler/backend/run_for_test.h"

namespace talpa::compiler {
namespace {

// One table over a map of 20,000 bytes: the output lies where the input was.
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
    options.target = make_target("ethos-u65-256", "High_End", MemoryMode::SharedSram, 19'000).value();
    const auto refused = compile(sigmoid_of_20000(), options);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::OutOfResources);
    EXPECT_NE(refused.error().message.find("20000 bytes of SRAM are required, 19000 are available"), std::string::npos)
        << refused.error().message;
    options.target = make_target("ethos-u65-256", "High_End", MemoryMode::SharedSram, 20'000).value();
    EXPECT_TRUE(compile(sigmoid_of_20000(), options).has_value());
    // Where there is a slower memory behind it, it takes what does not fit.
    options.target = make_target("ethos-u65-256", "High_End", MemoryMode::DedicatedSram, 4096).value();
    const auto spilled = compile(sigmoid_of_20000(), options);
    ASSERT_TRUE(spilled.has_value());
    EXPECT_LE(spilled->report.delegates[0].fast_bytes, 4096u);
}

// Where there is SRAM only, the weights are in it too: 64 x 64 x 9 of them beside maps of 16 x 16 x 64.
TEST(MemoryLimit, CountsTheConstantsWhereAllIsInSram) {
    testing::QuantizedNet net(3);
    const ValueId x = net.conv(net.input(16, 16, 64), 64, 3, 1, false, true);
    const Graph graph = net.finish(x);
    CompileOptions options;
    const auto within = [&](std::uint64_t bytes) {
        options.target = make_target("ethos-u65-256", "High_End", MemoryMode::SramOnly, bytes).value();
        return compile(graph, options);
    };
    // The maps alone would fit.
    const auto refused = within(40'000);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::OutOfResources) << refused.error().message;
    // What it says is required is enough, and counts the weights also where not even the maps fit.
    const std::uint64_t required = std::stoull(refused.error().message);
    EXPECT_TRUE(within(required).has_value()) << required;
    const auto hopeless = within(4'000);
    ASSERT_FALSE(hopeless.has_value());
    EXPECT_GT(std::stoull(hopeless.error().message), 35'000u) << hopeless.error().message;
    EXPECT_NE(hopeless.error().message.find("most is needed at"), std::string::npos) << hopeless.error().message;
    const auto fits = within(80'000);
    ASSERT_TRUE(fits.has_value()) << fits.error().message;
    const DelegateReport& d = fits->report.delegates[0];
    EXPECT_LE(d.arena_bytes + d.constant_bytes, 80'000u);
    EXPECT_GT(d.constant_bytes, 30'000u);
}

// What is required is what suffices: not what the first step lacks, nor the first of several delegates, nor, where the
// constants of all of them lie in SRAM at once, each of them alone.
TEST(MemoryLimit, WhatIsRequiredSuffices) {
    using Between = testing::RandomGraph::Between;
    struct Case {
        Between between;
        MemoryMode mode;
    };
    for (const Case& c : {Case{Between::Nothing, MemoryMode::SharedSram},
                          {Between::CpuOperators, MemoryMode::SharedSram},
                          {Between::CpuOperators, MemoryMode::SramOnly}}) {
        unsigned refusals = 0, several = 0;
        for (std::uint32_t seed = 1; seed < (c.between == Between::Nothing ? 16u : 51u); ++seed) {
            const Graph graph = testing::RandomGraph(seed, c.between).make();
            CompileOptions options;
            options.target = make_target("ethos-u65-256", "High_End", c.mode, 256).value();
            const auto refused = compile(graph, options);
            if (refused) continue;
            ++refusals;
            ASSERT_EQ(refused.error().code, ErrorCode::OutOfResources) << refused.error().message;
            options.target.sram_bytes = std::stoull(refused.error().message);
            const auto fits = compile(graph, options);
            ASSERT_TRUE(fits.has_value())
                << seed << ": " << refused.error().message << "; then " << fits.error().message;
            several += fits->report.delegates.size() > 1 ? 1 : 0;
            std::uint64_t arena = 0, constants = 0;
            for (const DelegateReport& d : fits->report.delegates) {
                arena = std::max(arena, d.arena_bytes);
                constants += c.mode == MemoryMode::SramOnly ? d.constant_bytes : 0;
            }
            EXPECT_LE(arena + constants, options.target.sram_bytes) << seed;
            // And little less does not.
            options.target.sram_bytes = options.target.sram_bytes * 9 / 10;
            EXPECT_FALSE(compile(graph, options).has_value()) << seed << ": " << refused.error().message;
        }
        EXPECT_GT(refusals, 5u);
        EXPECT_GE(several, c.between == Between::CpuOperators ? 5u : 0u);
    }
}

// Two results of 1.2e9 bytes: 2.4e9 would do for the search, but a program's sizes have 31 bits.
TEST(MemoryLimit, WhatIsRequiredIsNotPromisedWhereItIsImpossible) {
    Graph graph = sigmoid_of_20000();
    for (Value& v : graph.values) v.shape = {1, 24'500, 24'500, 2};
    const Value other = graph[graph.outputs[0]];
    graph.outputs.push_back(
        graph.add_node(Op::Tanh, {graph.inputs[0]}, UnaryAttr{}, other, Source{"tanh", "", "", ""}));
    CompileOptions options;
    options.target = make_target("ethos-u65-256", "High_End", MemoryMode::SharedSram, 19'000).value();
    const auto refused = compile(graph, options);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::OutOfResources);
    EXPECT_EQ(refused.error().message.find("at least 24"), 0u) << refused.error().message;
}

// Each sum lies where its operand was, so that one map is all that there ever is.
TEST(MemoryLimit, CountsAResultInItsOperandsPlaceOnce) {
    Graph g;
    const auto map = [](const char* name, double scale) {
        Value v{.name = name, .shape = {1, 32, 32, 4}};
        v.quantization = Quantization{.type = DType::Int8, .scales = {scale}, .zero_points = {3}};
        return v;
    };
    g.inputs = {g.add_value(map("x", 0.1))};
    ValueId at = g.inputs[0];
    for (const char* name : {"twice", "fourfold", "eightfold"})
        at = g.add_node(Op::Add, {at, at}, BinaryAttr{}, map(name, 0.3), Source{name, "", "", ""});
    g.outputs = {at};
    CompileOptions options;
    options.target = make_target("ethos-u65-256", "High_End", MemoryMode::SharedSram, 4096).value();
    const auto fits = compile(g, options);
    ASSERT_TRUE(fits.has_value()) << fits.error().message;
    EXPECT_LE(fits->report.delegates[0].arena_bytes, 4096u);
}

// Also where the memory goes with a copy of the input, without which it is read in bursts of a few bytes: the network
// without the copy takes ten times as long.
TEST(OptimizedForSize, TakesAtMostTwiceTheTime) {
    struct Case {
        std::int64_t size, channels, kernel, stride;
        bool depthwise;
    };
    for (const Case& c : {Case{160, 4, 5, 3, false}, {128, 4, 5, 3, false}, {160, 3, 3, 2, true}}) {
        testing::QuantizedNet net(3);
        const ValueId in = net.input(c.size, c.size, c.channels);
        const Graph graph =
            net.finish(net.conv(in, c.depthwise ? c.channels : 8, c.kernel, c.stride, c.depthwise, true));
        std::uint64_t cycles[2] = {};
        CompileOptions options;
        options.target = make_target("ethos-u65-256", "High_End", MemoryMode::DedicatedSram, 384 << 10).value();
        for (const Optimize optimize : {Optimize::Speed, Optimize::Size}) {
            options.target.optimize = optimize;
            const auto compiled = compile(graph, options);
            ASSERT_TRUE(compiled.has_value()) << compiled.error().message;
            cycles[optimize == Optimize::Size] = compiled->report.delegates[0].cycles;
        }
        EXPECT_LE(cycles[1], 2 * cycles[0]) << c.size << " x " << c.channels;
    }
}

TEST(Compiled, BytesAreTheSameEachTime) {
    for (std::uint32_t seed = 1; seed < 20; ++seed) {
        const Graph graph = testing::RandomGraph(seed).make();
        EXPECT_EQ(compile(graph)->pte, compile(graph)->pte) << seed;
    }
}

}  // namespace
}  // namespace talpa::compiler
