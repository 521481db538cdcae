// A random network whose choices the fuzzer makes: compiled for a part and memory that it chooses too, run on the
// strict NPU model, compared with plain integer loops. Anything but the same numbers, or a clear refusal, is a crash.
#include <cstdio>
#include <cstdlib>

#include "compiler/backend/integer_reference_for_test.h"
#include "compiler/backend/random_graph_for_test.h"
#include "compiler/backend/run_for_test.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace talpa;
    using namespace talpa::compiler;
    if (size < 2 || size > 512) return 0;
    static constexpr const char* kParts[] = {"ethos-u65-256", "ethos-u65-512", "ethos-u55-256",
                                             "ethos-u55-128", "ethos-u55-64",  "ethos-u55-32"};
    static constexpr MemoryMode kModes[] = {MemoryMode::DedicatedSram, MemoryMode::SharedSram, MemoryMode::SramOnly};
    static constexpr std::uint64_t kSram[] = {kUnlimited, 32 << 10, 8 << 10, 2 << 10};
    CompileOptions options;
    options.target = *make_target(kParts[data[0] % 6], "High_End", kModes[data[0] / 6 % 3], kSram[data[1] % 4]);
    testing::RandomGraph random(std::span(data + 2, size - 2));
    const Graph graph = random.make();
    testing::IntegerReference reference(graph);
    std::vector<std::vector<std::uint8_t>> inputs;
    for (const ValueId id : graph.inputs) {
        const auto numbers = random.numbers(graph[id]);
        reference.set(id, numbers);
        inputs.push_back(testing::to_bytes(numbers, graph[id].stored_type()));
    }
    const auto result = testing::compile_and_run(graph, inputs, options);
    if (!result) {
        // Too little memory is the one thing that may be said; so much that it is asked for less is not tried here.
        if (result.error().code == ErrorCode::OutOfResources) return 0;
        std::fprintf(stderr, "%s\n", result.error().describe().c_str());
        std::abort();
    }
    reference.run();
    for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
        const auto got = testing::to_numbers(result->outputs[i], graph[graph.outputs[i]].stored_type());
        if (got == reference[graph.outputs[i]]) continue;
        for (const Node& n : graph.nodes) std::fprintf(stderr, "%s ", op_name(n.op));
        std::fprintf(stderr, "on %s: output %zu differs\n", options.target.npu.c_str(), i);
        std::abort();
    }
    return 0;
}
