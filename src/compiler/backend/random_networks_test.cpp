// Differential fuzzing: random networks, compiled and run on the strict NPU model, against plain integer loops.
// TALPA_RANDOM_NETWORKS=N runs N of them (TALPA_RANDOM_SEED the first), as a soak.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "compiler/backend/integer_reference_for_test.h"
#include "compiler/backend/random_graph_for_test.h"
#include "compiler/backend/run_for_test.h"

namespace talpa::compiler {
namespace {

unsigned from_environment(const char* name, unsigned otherwise) {
    const char* text = std::getenv(name);
    return text == nullptr ? otherwise : static_cast<unsigned>(std::strtoul(text, nullptr, 10));
}

// Of outputs that float32 operators on the CPU had a part in: an element may be one step off, where float32 sums come
// to a half.
struct Tally {
    unsigned delegates = 0, cpu_nodes = 0, several = 0;
};

/// `sram`: another limit than the seed's own; 0: none other.
void check_one(std::uint32_t seed, Tally* cpu = nullptr, std::uint64_t sram = 0, bool sums = false) {
    using Between = testing::RandomGraph::Between;
    testing::RandomGraph random(seed, cpu != nullptr ? Between::CpuOperators : sums ? Between::Sums : Between::Nothing);
    const Graph graph = random.make();
    testing::IntegerReference reference(graph);
    std::vector<std::vector<std::uint8_t>> inputs;
    for (const ValueId id : graph.inputs) {
        const std::vector<std::int64_t> numbers = random.numbers(graph[id]);
        reference.set(id, numbers);
        inputs.push_back(testing::to_bytes(numbers, graph[id].stored_type()));
    }
    reference.run();
    std::string text = "seed " + std::to_string(seed) + ":";
    for (const Node& n : graph.nodes) text += std::string(" ") + op_name(n.op);
    CompileOptions options;
    // Every part and memory mode has its turn; every third network has so little SRAM that stripes and spills are
    // needed.
    static constexpr const char* kParts[] = {"ethos-u65-256", "ethos-u65-512", "ethos-u55-256",
                                             "ethos-u55-128", "ethos-u55-64",  "ethos-u55-32"};
    static constexpr MemoryMode kModes[] = {MemoryMode::SramOnly, MemoryMode::SharedSram};
    const bool other = seed % 4 == 1;
    options.target = make_target(other ? kParts[seed / 4 % 6] : kParts[0], "High_End",
                                 seed % 8 == 2 ? kModes[seed / 8 % 2] : MemoryMode::DedicatedSram,
                                 seed % 3 == 0 && seed % 8 != 2 ? 8 << 10 : kUnlimited)
                         .value();
    if (sram != 0) options.target.sram_bytes = sram;
    if (std::getenv("TALPA_RANDOM_DUMP") != nullptr) {
        options.dump_after = "schedule";
        const auto compiled = compile(graph, options);
        if (compiled) std::fputs(compiled->report.dump.c_str(), stderr);
    }
    const auto result = testing::compile_and_run(graph, inputs, options);
    text += " on " + options.target.npu;
    ASSERT_TRUE(result.has_value()) << text << "\n" << result.error().describe();
    if (cpu == nullptr)
        for (const CpuNode& c : result->report.cpu_nodes) ADD_FAILURE() << text << " on the CPU: " << c.reason;
    else
        *cpu = {cpu->delegates + static_cast<unsigned>(result->report.delegates.size()),
                cpu->cpu_nodes + static_cast<unsigned>(result->report.cpu_nodes.size()),
                cpu->several + (result->report.delegates.size() > 1 ? 1u : 0u)};
    for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
        const Value& v = graph[graph.outputs[i]];
        const auto got = testing::to_numbers(result->outputs[i], v.stored_type());
        const auto& wanted = reference[graph.outputs[i]];
        ASSERT_EQ(got.size(), wanted.size());
        std::size_t wrong = 0;
        std::string first;
        for (std::size_t k = 0; k < got.size(); ++k)
            if (got[k] != wanted[k] && wrong++ == 0)
                first = "element " + std::to_string(k) + " is " + std::to_string(got[k]) + ", wanted " +
                        std::to_string(wanted[k]);
        EXPECT_EQ(wrong, 0u) << text << " output " << i << " of " << got.size() << ": " << first;
    }
}

TEST(RandomNetworks, GiveTheIntegersOfThePlainLoops) {
    const unsigned first = from_environment("TALPA_RANDOM_SEED", 1),
                   count = from_environment("TALPA_RANDOM_NETWORKS", 150);
    for (unsigned seed = first; seed < first + count; ++seed) check_one(seed);
}

// A concatenation of numbers whose scale is 2^31 times that of the result, and more.
TEST(RandomNetworks, GiveTheSameWhereAScaleIsBeyondAllOthers) {
    check_one(900348);
}

// 1016: a phase of a transposed convolution whose last row reads padding only: no stripe may consist of it. 1165: an
// average pool of nothing but 127, whose output takes its input's place. 86262: cumulative sums of 8 bits, too long for
// the NPU.
TEST(RandomNetworks, GiveTheSameWhereThoseOfALongRunOnceFailed) {
    Tally tally;
    for (const std::uint32_t seed : {1016u, 1165u, 86262u}) check_one(seed, &tally);
}

// A border above a map of which only some rows are kept, filled when the rows below were there already: nobody reads
// it, and it must not lie on rows that somebody does.
TEST(RandomNetworks, GiveTheSameWhereABorderThatNobodyReadsIsFilledLate) {
    for (const std::uint64_t kib : {20, 24, 28, 32, 36, 40}) check_one(50246, nullptr, kib << 10);
}

// Matrix products of several batches, in stripes: their products must not be mixed.
TEST(RandomNetworks, GiveTheSameWhereProductsOfSeveralBatchesRunInStripes) {
    for (const std::uint32_t seed : {300080u, 300993u}) check_one(seed);
    Tally tally;
    for (const std::uint32_t seed : {301339u, 301499u, 301690u}) check_one(seed, &tally);
}

// Sums so far, on the NPU all of them.
TEST(RandomNetworks, GiveTheSameWithCumulativeSums) {
    const unsigned first = from_environment("TALPA_RANDOM_SEED", 1),
                   count = from_environment("TALPA_RANDOM_NETWORKS", 60);
    unsigned sums = 0;
    for (unsigned seed = first; seed < first + count; ++seed) {
        check_one(seed, nullptr, 0, true);
        const Graph graph = testing::RandomGraph(seed, testing::RandomGraph::Between::Sums).make();
        sums += static_cast<unsigned>(std::ranges::count(graph.nodes, Op::CumSum, &Node::op));
    }
    EXPECT_GT(sums, count / 2);
}

// Operators that only the CPU has between those of the NPU: programs of several delegates.
TEST(RandomNetworks, GiveTheSameWithOperatorsOfTheCpuBetween) {
    const unsigned first = from_environment("TALPA_RANDOM_SEED", 1),
                   count = from_environment("TALPA_RANDOM_NETWORKS", 60);
    Tally tally;
    for (unsigned seed = first; seed < first + count; ++seed) check_one(seed, &tally);
    EXPECT_GT(tally.cpu_nodes, count / 3);
    EXPECT_GT(tally.delegates, count / 2);
    EXPECT_GT(tally.several, count / 20);
}

}  // namespace
}  // namespace talpa::compiler
