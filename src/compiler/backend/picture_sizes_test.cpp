// MobileNetV2 for pictures from 96 to 448 pixels: all of it on the NPU within the i.MX 93's 384 KiB, no hazards, and
// cycles that grow with the area. And that networks much longer than SRAM can hold schedule, the same way each time.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "compiler/backend/mobilenet_for_test.h"
#include "compiler/backend/run_for_test.h"

namespace talpa::compiler {
namespace {

constexpr std::uint64_t kChip = 384 << 10;

std::vector<std::uint8_t> noise(const Graph& graph) {
    std::mt19937 random(5);
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(element_count(graph[graph.inputs[0]].shape)));
    for (auto& b : bytes) b = static_cast<std::uint8_t>(random());
    return bytes;
}

TEST(PictureSizes, MobileNetV2StaysOnTheNpuAndItsCyclesGrowWithTheArea) {
    double at_224 = 0;
    for (const std::int64_t size : {224, 96, 160, 192, 256, 320, 448}) {
        const Graph graph = testing::mobilenet_v2(size);
        CompileOptions options;
        options.target.sram_bytes = kChip;
        const auto result = testing::compile_and_run(graph, {noise(graph)}, options, size <= 96);
        ASSERT_TRUE(result.has_value()) << size << ": " << result.error().describe();
        EXPECT_TRUE(result->report.cpu_nodes.empty());
        ASSERT_EQ(result->report.delegates.size(), 1u);
        const DelegateReport& d = result->report.delegates[0];
        EXPECT_LE(d.fast_bytes, kChip) << size;
        const auto cycles = static_cast<double>(d.cycles);
        if (size == 224) at_224 = cycles;
        // 3.5 MB of weights are read at every size: nearly a million cycles of DRAM that small pictures cannot hide.
        const double area = static_cast<double>(size * size) / (224 * 224), weights = 0.95e6;
        std::printf("%4lld pixels %9.0f cycles, %.3f of the area's share, SRAM %llu, DRAM arena %llu\n",
                    static_cast<long long>(size), cycles, cycles / (at_224 * area),
                    static_cast<unsigned long long>(d.fast_bytes), static_cast<unsigned long long>(d.arena_bytes));
        EXPECT_LE(cycles, 1.05 * at_224 * area + (size < 224 ? weights : 0)) << size;
        // The same numbers as with memory without end, whose plan is another one.
        if (size != 160 && size != 320) continue;
        options.target.sram_bytes = kUnlimited;
        const auto other = testing::compile_and_run(graph, {noise(graph)}, options, false);
        ASSERT_TRUE(other.has_value()) << other.error().describe();
        EXPECT_EQ(result->outputs, other->outputs) << size;
        EXPECT_GT(std::ranges::max(result->outputs[0]) - std::ranges::min(result->outputs[0]), 20);
    }
}

// No timing is asserted here (machines are busy); the time is printed, and the benchmark table has it.
TEST(PictureSizes, ALongChainThatDoesNotFitSchedulesTheSameEachTime) {
    const Graph graph = testing::long_chain(240, 96, 48);
    CompileOptions options;
    options.target.sram_bytes = 128 << 10;
    const auto begin = std::chrono::steady_clock::now();
    const auto first = compile(graph, options);
    ASSERT_TRUE(first.has_value()) << first.error().describe();
    std::printf("%.2f s\n", std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    ASSERT_EQ(first->report.delegates.size(), 1u);
    EXPECT_LE(first->report.delegates[0].fast_bytes, 128u << 10);
    const auto second = compile(graph, options);
    ASSERT_TRUE(second.has_value());
    EXPECT_EQ(first->pte, second->pte);
}

}  // namespace
}  // namespace talpa::compiler
