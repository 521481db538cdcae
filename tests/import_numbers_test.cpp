// What the importers make of the reference networks computes what PyTorch computed: float archives within rounding,
// quantized ones within few steps of the recorded integers (their graphs are executed in float here; exactness is the
// lowering's matter).
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/core/byte_reader.h"
#include "base/host/file.h"
#include "base/host/json.h"
#include "base/host/testing.h"
#include "compiler/floats/executor.h"
#include "compiler/import/import.h"

namespace talpa::compiler {
namespace {

namespace fs = std::filesystem;

struct Case {
    fs::path folder;
    std::string name;
};

std::vector<Case> cases(const fs::path& reference) {
    std::vector<Case> found;
    for (const auto& entry : fs::recursive_directory_iterator(reference))
        if (const auto file = entry.path().filename().string(); file.ends_with(".float.pt2"))
            found.push_back({entry.path().parent_path(), file.substr(0, file.size() - 10)});
    std::ranges::sort(found, {}, &Case::name);
    return found;
}

/// A recorded tensor as reals; integers by the scale that the description gives.
std::vector<float> load(const fs::path& file, const host::Json& facts) {
    const auto bytes = host::read_file(file);
    if (!bytes) return {};
    const std::string type = facts.at("dtype");
    std::vector<float> out;
    if (type == "float32")
        for (std::size_t i = 0; i < bytes->size(); i += 4) out.push_back(load_le<float>(bytes->data() + i));
    else if (type == "int64")
        for (std::size_t i = 0; i < bytes->size(); i += 8)
            out.push_back(static_cast<float>(load_le<std::int64_t>(bytes->data() + i)));
    else
        for (const auto b : *bytes)
            out.push_back(static_cast<float>(static_cast<std::int8_t>(b) - facts.value("zero_point", 0)) *
                          facts.value("scale", 1.0F));
    return out;
}

struct Recorded {
    std::vector<std::vector<float>> inputs, outputs, float_outputs;
    /// How far the recorded outputs are from dequantize, float operator, quantize, as their makers measured it.
    std::vector<double> away;
    bool integers_in = false;
};

Recorded recorded(const Case& c) {
    const auto facts = host::Json::parse(*host::read_text(c.folder / (c.name + ".json")));
    Recorded r;
    for (host::Json in : facts.at("inputs")) {
        if (in.at("dtype") == "int8") {
            in.update(facts.at("input_quant").at(r.inputs.size()));
            r.integers_in = true;
        }
        r.inputs.push_back(load(c.folder / in.at("file"), in));
    }
    std::size_t i = 0;
    for (const auto& out : facts.at("outputs")) {
        r.outputs.push_back(load(c.folder / out.at("file"), out));
        r.away.push_back(out.value("max_abs_diff_to_fake_quant", 0.0));
        host::Json real = out;
        if (real.at("dtype") == "int8") real["dtype"] = "float32";
        r.float_outputs.push_back(load(c.folder / ("float_out" + std::to_string(i++) + ".bin"), real));
    }
    return r;
}

TEST(ImportNumbers, FloatArchivesComputeWhatPyTorchDid) {
    TALPA_NEEDS_REFERENCE();
    const auto all = cases(reference);
    ASSERT_EQ(all.size(), 45u);
    for (const Case& c : all) {
        const auto graph = import::import_model(c.folder / (c.name + ".float.pt2"));
        ASSERT_TRUE(graph.has_value()) << c.name << ": " << graph.error().describe();
        const auto executor = FloatExecutor::create(*graph);
        ASSERT_TRUE(executor.has_value()) << c.name << ": " << executor.error().describe();
        const Recorded r = recorded(c);
        if (r.integers_in) continue;  // the float outputs were computed from inputs before they were rounded
        FloatExecutor::Workspace workspace;
        const auto outputs = executor->run(r.inputs, workspace);
        ASSERT_TRUE(outputs.has_value()) << c.name << ": " << outputs.error().describe();
        ASSERT_EQ(outputs->size(), r.float_outputs.size()) << c.name;
        for (std::size_t o = 0; o < outputs->size(); ++o) {
            const auto &mine = (*outputs)[o], &theirs = r.float_outputs[o];
            ASSERT_EQ(mine.size(), theirs.size()) << c.name;
            float largest = 0, worst = 0;
            for (std::size_t i = 0; i < mine.size(); ++i) {
                largest = std::max(largest, std::abs(theirs[i]));
                worst = std::max(worst, std::abs(mine[i] - theirs[i]));
            }
            EXPECT_LE(worst, 2e-5F * largest) << c.name << " output " << o;
        }
    }
}

TEST(ImportNumbers, QuantizedArchivesComeWithinStepsOfTheRecordedIntegers) {
    TALPA_NEEDS_REFERENCE();
    for (const Case& c : cases(reference)) {
        const auto graph = import::import_model(c.folder / (c.name + ".quantized.pt2"));
        ASSERT_TRUE(graph.has_value()) << c.name << ": " << graph.error().describe();
        const auto executor = FloatExecutor::create(*graph, Rounding::Quantized);
        ASSERT_TRUE(executor.has_value()) << c.name << ": " << executor.error().describe();
        const Recorded r = recorded(c);
        FloatExecutor::Workspace workspace;
        const auto outputs = executor->run(r.inputs, workspace);
        ASSERT_TRUE(outputs.has_value()) << c.name << ": " << outputs.error().describe();
        ASSERT_EQ(outputs->size(), r.outputs.size()) << c.name;
        const Uses uses = find_uses(*graph);
        for (std::size_t o = 0; o < outputs->size(); ++o) {
            const auto &mine = (*outputs)[o], &theirs = r.outputs[o];
            ASSERT_EQ(mine.size(), theirs.size()) << c.name;
            // The step of what is dequantized at the output.
            const Node& last = graph->nodes[static_cast<std::size_t>(uses.producer[graph->outputs[o]])];
            const auto& q = (*graph)[last.inputs[0]].quantization;
            const double step = q ? q->scales[0] : 1e-6;
            double worst = 0;
            for (std::size_t i = 0; i < mine.size(); ++i)
                worst = std::max(worst, std::abs(static_cast<double>(mine[i]) - static_cast<double>(theirs[i])) / step);
            EXPECT_LE(worst, r.away[o] / step + 1.01) << c.name << " output " << o;
        }
    }
}

std::vector<float> floats(const fs::path& file) {
    return load(file, {{"dtype", "float32"}});
}

std::vector<std::vector<float>> run(const Graph& graph, const std::vector<std::vector<float>>& inputs,
                                    Rounding rounding = Rounding::None) {
    const auto executor = FloatExecutor::create(graph, rounding);
    if (!executor) {
        ADD_FAILURE() << executor.error().describe();
        return {};
    }
    FloatExecutor::Workspace workspace;
    auto outputs = executor->run(inputs, workspace);
    if (!outputs) {
        ADD_FAILURE() << outputs.error().describe();
        return {};
    }
    return *outputs;
}

double furthest(const std::vector<float>& a, const std::vector<float>& b) {
    if (a.size() != b.size()) return 1e9;
    double worst = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        worst = std::max(worst, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
    return worst;
}

/// Outputs by the onnx package's reference evaluator.
TEST(ImportNumbers, OnnxModelsComputeWhatTheReferenceEvaluatorDid) {
    const auto folder = testing::golden_folder() / "import";
    struct Net {
        const char* name;
        double tolerance;
        Rounding rounding;
    };
    // The last is quantized with steps of 0.03; one step may go the other way at a tie.
    for (const Net& net : {Net{"float_net", 1e-6, Rounding::None}, Net{"shapes_net", 1e-6, Rounding::None},
                           Net{"qdq_net", 0.0301, Rounding::Quantized}}) {
        const auto graph = import::import_model(folder / (std::string(net.name) + ".onnx"));
        ASSERT_TRUE(graph.has_value()) << net.name << ": " << graph.error().describe();
        const auto outputs = run(*graph, {floats(folder / (std::string(net.name) + ".in0.bin"))}, net.rounding);
        ASSERT_EQ(outputs.size(), 1u) << net.name;
        EXPECT_LE(furthest(outputs[0], floats(folder / (std::string(net.name) + ".out0.bin"))), net.tolerance)
            << net.name;
    }
}

/// Weights alone, with the network built in, against the same network as PyTorch ran it.
TEST(ImportNumbers, FilesOfWeightsMakeTheirNetworks) {
    TALPA_NEEDS_REFERENCE();
    struct Net {
        fs::path file, folder;
    };
    for (const Net& net :
         {Net{reference / "models/mobilenet_v2.pth", reference / "models/mobilenet_v2"},
          Net{testing::golden_folder() / "import/ds_cnn.safetensors", reference / "models/ds_cnn_random"}}) {
        const auto graph = import::import_model(net.file);
        ASSERT_TRUE(graph.has_value()) << net.file << ": " << graph.error().describe();
        const auto outputs = run(*graph, {floats(net.folder / "in0.bin")});
        const auto expected = floats(net.folder / "float_out0.bin");
        ASSERT_EQ(outputs.size(), 1u);
        const float largest = std::ranges::max(expected);
        EXPECT_LE(furthest(outputs[0], expected), 2e-5 * static_cast<double>(largest)) << net.file;
    }
}

TEST(ImportNumbers, WeightsThatDoNotFitAreListed) {
    const auto graph =
        import::import_model(testing::golden_folder() / "import/ds_cnn.safetensors", {.architecture = "resnet18"});
    ASSERT_FALSE(graph.has_value());
    const auto text = graph.error().describe();
    EXPECT_NE(text.find("the weights do not fit resnet18"), std::string::npos) << text;
    EXPECT_NE(text.find("missing: 'conv1.weight' of shape [64, 3, 7, 7]"), std::string::npos) << text;
    EXPECT_NE(text.find("and "), std::string::npos);
    EXPECT_FALSE(import::import_model(testing::golden_folder() / "import/small.safetensors").has_value());
}

}  // namespace
}  // namespace talpa::compiler
