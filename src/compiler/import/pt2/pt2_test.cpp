// Every archive of the reference set comes in; what comes out is in the form that graph.h promises.
#include "compiler/import/pt2/pt2.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/host/file.h"
#include "base/host/testing.h"
#include "compiler/graph/check.h"
#include "compiler/graph/constant.h"
#include "compiler/graph/dump.h"
#include "compiler/import/import.h"
#include "compiler/import/onnx/onnx.h"
#include "compiler/import/tflite/tflite.h"
#include "compiler/import/zip.h"
#include "compiler/import/zip_for_test.h"

namespace talpa::compiler::import {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::vector<fs::path> archives(const fs::path& root, std::string_view ending) {
    std::vector<fs::path> found;
    for (const auto& entry : fs::recursive_directory_iterator(root))
        if (entry.path().string().ends_with(ending)) found.push_back(entry.path());
    std::ranges::sort(found);
    return found;
}

std::size_t count(const Graph& g, Op op) {
    return static_cast<std::size_t>(std::ranges::count(g.nodes, op, &Node::op));
}

TEST(Pt2, AllQuantizedArchivesComeIn) {
    TALPA_NEEDS_REFERENCE();
    const auto files = archives(reference, ".quantized.pt2");
    ASSERT_EQ(files.size(), 45u);
    for (const auto& file : files) {
        const auto graph = import_model(file);
        ASSERT_TRUE(graph.has_value()) << file << ": " << graph.error().describe();
        ASSERT_TRUE(check_graph(*graph).has_value()) << file;
        if (std::getenv("TALPA_SHOW") != nullptr) std::fputs(dump(*graph).c_str(), stdout);
    }
}

TEST(Pt2, AllFloatArchivesComeIn) {
    TALPA_NEEDS_REFERENCE();
    const auto files = archives(reference, ".float.pt2");
    ASSERT_EQ(files.size(), 45u);
    for (const auto& file : files) {
        const auto graph = import_model(file);
        ASSERT_TRUE(graph.has_value()) << file << ": " << graph.error().describe();
        EXPECT_EQ(count(*graph, Op::BatchNorm), 0u) << file;
        for (const Value& v : graph->values) EXPECT_FALSE(v.quantization) << file << " " << v.name;
        if (std::getenv("TALPA_SHOW") != nullptr) std::fputs(dump(*graph).c_str(), stdout);
    }
}

/// One permute at the input, one at a spatial output, none inside; each before the float border.
TEST(Pt2, NetworksAreChannelsLastInside) {
    TALPA_NEEDS_REFERENCE();
    for (const char* name : {"mobilenet_v2", "efficientnet_lite0", "mobilenet_v3_small_random", "resnet8_random"}) {
        const auto graph = import_model(reference / "models" / name / (std::string(name) + ".quantized.pt2"));
        ASSERT_TRUE(graph.has_value()) << graph.error().describe();
        EXPECT_EQ(count(*graph, Op::Permute), 1u) << name;
        EXPECT_EQ(count(*graph, Op::Pad), 0u) << name;
        EXPECT_EQ(count(*graph, Op::ClampOp), 0u) << name;
        EXPECT_EQ(count(*graph, Op::Requantize), 2u) << name;
        EXPECT_EQ(graph->nodes.front().op, Op::Requantize);
        EXPECT_EQ(graph->nodes.back().op, Op::Requantize);
        EXPECT_EQ((*graph)[graph->outputs.at(0)].type, DType::Float32);
    }
    const auto graph = import_model(reference / "ops/conv1x1/conv1x1.quantized.pt2");
    ASSERT_TRUE(graph.has_value());
    const Uses uses = find_uses(*graph);
    const Node& last = graph->nodes[static_cast<std::size_t>(uses.producer[graph->outputs[0]])];
    ASSERT_EQ(last.op, Op::Requantize);
    EXPECT_EQ(graph->nodes[static_cast<std::size_t>(uses.producer[last.inputs[0]])].op, Op::Permute);
}

/// Operators of MobileNetV2 by its own description: 52 convolutions, 10 additions, one classifier.
TEST(Pt2, FloatAndQuantizedMobileNetAgree) {
    TALPA_NEEDS_REFERENCE();
    const auto base = reference / "models/mobilenet_v2";
    const auto real = import_model(base / "mobilenet_v2.float.pt2");
    const auto quantized = import_model(base / "mobilenet_v2.quantized.pt2");
    ASSERT_TRUE(real.has_value() && quantized.has_value());
    for (const auto* g : {&*real, &*quantized}) {
        EXPECT_EQ(count(*g, Op::Conv2d), 52u);
        EXPECT_EQ(count(*g, Op::Add), 10u);
        EXPECT_EQ(count(*g, Op::FullyConnected), 1u);
        std::size_t clamped = 0;
        for (const Node& n : g->nodes)
            if (n.op == Op::Conv2d) clamped += n.as<ConvAttr>().clamp == Clamp{0, 6} ? 1 : 0;
        EXPECT_EQ(clamped, 35u);
    }
    // The same weights, one folded here, one by ExecuTorch: dequantized they are within half a step.
    std::vector<const Node*> convs[2];
    for (const Node& n : real->nodes)
        if (n.op == Op::Conv2d) convs[0].push_back(&n);
    for (const Node& n : quantized->nodes)
        if (n.op == Op::Conv2d) convs[1].push_back(&n);
    for (std::size_t i = 0; i < convs[0].size(); ++i) {
        const Value &a = (*real)[convs[0][i]->inputs[1]], &b = (*quantized)[convs[1][i]->inputs[1]];
        ASSERT_EQ(a.shape, b.shape) << i;
        const auto x = real_numbers(a), y = real_numbers(b);
        for (std::size_t e = 0; e < x.size(); ++e) {
            const double step = b.quantization->scales[channel_of(b, static_cast<std::int64_t>(e))];
            ASSERT_NEAR(x[e], y[e], 0.501 * step) << i << " element " << e;
        }
        const Value &p = (*real)[convs[0][i]->inputs[2]], &q = (*quantized)[convs[1][i]->inputs[2]];
        const auto u = real_numbers(p), v = real_numbers(q);
        for (std::size_t e = 0; e < u.size(); ++e)
            ASSERT_NEAR(
                u[e], v[e],
                0.501 * q.quantization->scales[channel_of(q, static_cast<std::int64_t>(e))] + 1e-6 * std::abs(u[e]))
                << i;
    }
}

/// A golden network whose last operator adds what a new node makes.
host::Result<Graph> with_added(const std::string& target, const nlohmann::json& arguments, std::int64_t count,
                               int type) {
    const auto archive = host::read_file(std::string(TALPA_SOURCE_DIR) + "/tests/golden/import/conv3x3_same.float.pt2");
    EXPECT_TRUE(archive);
    const auto zip = Zip::open(*archive);
    EXPECT_TRUE(zip);
    std::vector<EntryForTest> entries;
    for (const auto& [entry, facts_of_entry] : zip->entries()) {
        const auto data = zip->read(entry, 1 << 20);
        EXPECT_TRUE(data);
        entries.push_back({entry, std::string(data->text())});
        if (!entry.ends_with("models/model.json")) continue;
        auto program = nlohmann::ordered_json::parse(entries.back().data);
        auto& graph = program["graph_module"]["graph"];
        auto& nodes = graph["nodes"];
        auto made = nodes[1];
        made["target"] = "torch.ops." + target;
        made["name"] = "made";
        made["inputs"] = nlohmann::ordered_json::array();
        for (const auto& [name, value] : arguments.items())
            made["inputs"].push_back({{"name", name}, {"arg", value}, {"kind", 1}});
        made["outputs"] = {{{"as_tensor", {{"name", "made"}}}}};
        auto facts = graph["tensor_values"]["p_0_bias"];
        facts["sizes"] = {{{"as_int", count}}};
        facts["dtype"] = type;
        graph["tensor_values"]["made"] = facts;
        nodes[1]["target"] = "torch.ops.aten.add.Tensor";
        nodes[1]["inputs"].push_back({{"name", "other"}, {"arg", {{"as_tensor", {{"name", "made"}}}}}, {"kind", 1}});
        nodes.insert(nodes.begin() + 1, made);
        entries.back().data = program.dump();
    }
    return import_bytes(zip_for_test(entries), {});
}

std::vector<float> added(const host::Result<Graph>& graph) {
    if (!graph) return ADD_FAILURE() << graph.error().describe(), std::vector<float>();
    for (const Node& n : graph->nodes)
        if (n.op == Op::Add) return real_numbers((*graph)[n.inputs[1]]);
    return ADD_FAILURE() << dump(*graph), std::vector<float>();
}

/// Numbers in a row that depend on constants alone are constants.
TEST(Pt2, RowsOfNumbersAreFolded) {
    constexpr int kFloat = 7;
    const auto number = [](double n) { return nlohmann::json{{"as_float", n}}; };
    const auto whole = [](int n) { return nlohmann::json{{"as_int", n}}; };
    const auto from_end = added(with_added("aten.arange.default", {{"end", number(32.0)}}, 32, kFloat));
    ASSERT_EQ(from_end.size(), 32u);
    for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(from_end[i], static_cast<float>(i));
    const auto steps = added(with_added(
        "aten.arange.start_step", {{"start", number(3.0)}, {"end", whole(-5)}, {"step", number(-0.25)}}, 32, kFloat));
    ASSERT_EQ(steps.size(), 32u);
    EXPECT_EQ(steps[1], 2.75f);
    EXPECT_EQ(steps[31], -4.75f);
    const auto line = added(with_added("aten.linspace.default",
                                       {{"start", whole(-1)}, {"end", whole(1)}, {"steps", whole(32)}}, 32, kFloat));
    ASSERT_EQ(line.size(), 32u);
    EXPECT_EQ(line[0], -1);
    EXPECT_EQ(line[31], 1);
    for (std::size_t i = 0; i < 32; ++i) EXPECT_NEAR(line[i], -1 + 2.0 * static_cast<double>(i) / 31, 1e-7);
    // Whole numbers stay whole: the program says float32 of what the operator gives as int64.
    const auto wrong = with_added("aten.arange.start", {{"start", whole(0)}, {"end", whole(32)}}, 32, kFloat);
    EXPECT_FALSE(wrong.has_value());
    const auto endless = with_added("aten.arange.start_step",
                                    {{"start", whole(0)}, {"end", whole(32)}, {"step", number(0.0)}}, 32, kFloat);
    ASSERT_FALSE(endless.has_value());
    EXPECT_THAT(endless.error().describe(), HasSubstr("in steps of 0"));
}

/// docs/formats/models.md lists what the tables have.
TEST(Importers, DocumentationNamesEveryOperator) {
    std::ifstream file(std::string(TALPA_SOURCE_DIR) + "/docs/formats/models.md");
    const std::string page((std::istreambuf_iterator<char>(file)), {});
    for (const auto& names : {pt2::known_operators(), tflite::known_operators(), onnx::known_operators()})
        for (const auto& name : names) EXPECT_THAT(page, HasSubstr("`" + name + "`"));
}

}  // namespace
}  // namespace talpa::compiler::import
