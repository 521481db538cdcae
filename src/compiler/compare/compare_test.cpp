// Model, quantized model and program held against each other. A sound program has no operator that goes wrong; one
// whose weights were changed behind the compiler's back is found out at the operator that reads them, and at no other.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/host/testing.h"
#include "compiler/compare/layers.h"
#include "compiler/import/import.h"
#include "compiler/quantize/quantize.h"

namespace talpa::compiler {
namespace {

struct Subject {
    Graph graph;
    CompileOptions options;
    Compiled compiled;
    Sample inputs;
};

// Numbers between -1 and 1.
Sample noise(const Graph& graph, std::uint32_t state) {
    Sample inputs;
    for (const ValueId id : graph.inputs) {
        std::vector<float> numbers(static_cast<std::size_t>(element_count(graph[id].shape)));
        for (float& x : numbers) {
            state = state * 1664525 + 1013904223;
            x = static_cast<float>(state >> 8) / static_cast<float>(1 << 23) - 1;
        }
        inputs.push_back(std::move(numbers));
    }
    return inputs;
}

Subject subject(const std::filesystem::path& model, const char* npu = "ethos-u65-256") {
    Subject s;
    auto graph = import::import_model(model);
    EXPECT_TRUE(graph) << graph.error().describe();
    s.graph = std::move(*graph);
    s.options.target = make_target(npu, "High_End", MemoryMode::DedicatedSram, 384 << 10).value();
    auto compiled = compile(s.graph, s.options);
    EXPECT_TRUE(compiled) << compiled.error().describe();
    s.compiled = std::move(*compiled);
    s.inputs = noise(s.graph, 1);
    return s;
}

/// `exact`: null where the model came quantized.
host::Result<NetworkComparison> compared(const Subject& s, const std::vector<std::uint8_t>& pte, double least_db = 0,
                                         const Graph* exact = nullptr) {
    // 16-aligned, as a program has to be.
    std::vector<std::uint8_t> room(pte.size() + 16);
    const auto skip = (16 - reinterpret_cast<std::uintptr_t>(room.data()) % 16) % 16;
    std::memcpy(room.data() + skip, pte.data(), pte.size());
    TRY_ASSIGN(const auto run, traced_run(talpa::Bytes(room).subspan(skip, pte.size()), "program", s.graph,
                                          s.compiled.report, *s.options.target.hardware, s.inputs, 1));
    return compare_layers(exact != nullptr ? *exact : s.graph, s.graph, s.inputs, &run, least_db);
}

TEST(Compare, ASoundProgramComputesEveryOperatorWithinAStep) {
    const auto golden = testing::golden_folder();
    for (const char* npu : {"ethos-u65-256", "ethos-u65-512"}) {
        const auto s = subject(golden / "import/conv3x3_same.quantized.pt2", npu);
        const auto c = compared(s, s.compiled.pte);
        ASSERT_TRUE(c) << c.error().describe();
        ASSERT_FALSE(c->layers.empty());
        EXPECT_FALSE(c->first_wrong);
        std::size_t seen = 0;
        for (const auto& layer : c->layers) seen += layer.worst_steps ? 1 : 0;
        EXPECT_GE(seen, 1u);
        EXPECT_GT(c->output_program_db, 20);
    }
}

TEST(Compare, ReferenceNetworksAreSound) {
    TALPA_NEEDS_REFERENCE();
    for (const char* name : {"resnet8_random", "ds_cnn_random"}) {
        const auto s = subject(reference / "models" / name / (std::string(name) + ".quantized.pt2"));
        const auto c = compared(s, s.compiled.pte);
        ASSERT_TRUE(c) << c.error().describe();
        std::size_t seen = 0;
        for (const auto& layer : c->layers) seen += layer.worst_steps ? 1 : 0;
        EXPECT_GT(seen, c->layers.size() / 2) << name;
        if (c->first_wrong) {
            const auto& w = c->layers[*c->first_wrong];
            ADD_FAILURE() << name << " " << s.graph.nodes[w.node].source.node << " "
                          << op_name(s.graph.nodes[w.node].op) << " " << *w.worst_steps << " steps, " << w.off << " of "
                          << w.elements << " hidden " << w.hidden;
        }
    }
}

/// What comes out is within what the report foretells, and no operator goes wrong.
void expect_as_foretold(const Subject& s, const Graph* exact, const std::string& name) {
    const auto c = compared(s, s.compiled.pte, 0, exact);
    ASSERT_TRUE(c) << name << ": " << c.error().describe();
    if (c->first_wrong) {
        const auto& w = c->layers[*c->first_wrong];
        ADD_FAILURE() << name << " " << s.graph.nodes[w.node].source.node << ": " << w.off << " of " << w.elements;
    }
    if (std::getenv("TALPA_SHOW") != nullptr)
        std::printf("%-28s foretold %6.1f dB (%6.1f to %6.1f), program %6.1f dB, %zu layers\n", name.c_str(),
                    c->output_quantized_db, c->output_least_db, c->output_most_db, c->output_program_db,
                    c->layers.size());
    EXPECT_GT(c->output_program_db, 0) << name;
    EXPECT_GE(c->output_program_db, c->output_least_db - 1.5) << name;
}

/// A float network quantized by inputs like the one that it then gets.
void expect_float_network_as_foretold(const std::filesystem::path& model) {
    auto graph = import::import_model(model);
    ASSERT_TRUE(graph) << graph.error().describe();
    QuantizeOptions how;
    how.observer = Observer::MinMax;
    how.equalisation = false;
    const std::vector<Sample> typical{noise(*graph, 1), noise(*graph, 2)};
    auto quantized = quantize(*graph, typical, how);
    ASSERT_TRUE(quantized) << model << quantized.error().describe();
    Subject s;
    s.graph = std::move(quantized->graph);
    s.inputs = noise(*graph, 1);
    s.options.target.optimize = Optimize::Size;  // the shortest search
    auto compiled = compile(s.graph, s.options);
    ASSERT_TRUE(compiled) << model << compiled.error().describe();
    s.compiled = std::move(*compiled);
    expect_as_foretold(s, &*graph, model.stem().string());
}

TEST(Compare, EveryFloatOperatorNetworkGivesWhatIsForetold) {
    TALPA_NEEDS_REFERENCE();
    std::vector<std::filesystem::path> folders;
    for (const auto& entry : std::filesystem::directory_iterator(reference / "ops")) folders.push_back(entry.path());
    for (const char* name : {"ds_cnn_random", "resnet8_random", "mobilenet_v3_small_random"})
        folders.push_back(reference / "models" / name);
    std::sort(folders.begin(), folders.end());
    std::size_t networks = 0;
    for (const auto& folder : folders) {
        const auto model = folder / (folder.filename().string() + ".float.pt2");
        if (!std::filesystem::exists(model)) continue;
        ++networks;
        expect_float_network_as_foretold(model);
    }
    EXPECT_EQ(networks, 43u);
}

TEST(Compare, EveryTfLiteNetworkGivesWhatIsForetold) {
    TALPA_NEEDS_REFERENCE();
    for (const char* name : {"split_concat", "mobilenet_v1_0.25_128_quant", "tf2_mobilenet_v2_1.0_224_ptq"}) {
        const auto s = subject(reference / "tflite" / (std::string(name) + ".tflite"));
        expect_as_foretold(s, nullptr, name);
    }
}

/// The graph with the bias of its `which`th convolution moved by many steps in one channel.
Graph with_other_bias(const Graph& graph, std::size_t which, std::uint32_t& node) {
    Graph changed = graph;
    for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
        if (graph.nodes[n].op != Op::Conv2d || which-- != 0) continue;
        node = n;
        Value& bias = changed[changed.nodes[n].inputs[2]];
        Bytes bytes = *bias.constant;
        bytes[5] ^= 0x40;  // the second channel's, an int32
        bias.constant = std::make_shared<const Bytes>(std::move(bytes));
        return changed;
    }
    return changed;
}

TEST(Compare, AChangedBiasIsFoundAtItsConvolution) {
    TALPA_NEEDS_REFERENCE();
    const auto s = subject(reference / "models/resnet8_random/resnet8_random.quantized.pt2");
    for (const std::size_t which : {0u, 4u}) {
        std::uint32_t node = 0;
        const auto other = compile(with_other_bias(s.graph, which, node), s.options);
        ASSERT_TRUE(other) << other.error().describe();
        ASSERT_EQ(other->pte.size(), s.compiled.pte.size());
        const auto c = compared(s, other->pte);
        ASSERT_TRUE(c) << c.error().describe();
        ASSERT_TRUE(c->first_wrong);
        EXPECT_EQ(c->layers[*c->first_wrong].node, node);
        std::size_t wrong = 0;
        for (const auto& layer : c->layers) wrong += layer.off != 0 ? 1 : 0;
        EXPECT_EQ(wrong, 1u) << "operators behind it compute what they should from what reaches them";
        EXPECT_LT(*c->layers[*c->first_wrong].program_db, c->layers[*c->first_wrong].quantized_db);
    }
}

TEST(Compare, TheFirstNoisyLayerIsNamed) {
    TALPA_NEEDS_REFERENCE();
    const auto s = subject(reference / "models/ds_cnn_random/ds_cnn_random.quantized.pt2");
    const auto all = compared(s, s.compiled.pte, 0), none = compared(s, s.compiled.pte, 199);
    ASSERT_TRUE(all && none);
    EXPECT_FALSE(all->first_noisy);
    ASSERT_TRUE(none->first_noisy);
    EXPECT_EQ(*none->first_noisy, 0u);
}

}  // namespace
}  // namespace talpa::compiler
