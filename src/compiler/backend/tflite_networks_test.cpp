// The .tflite networks of the reference set, compiled and run, against what LiteRT's kernels gave: every byte. Two
// makers' models: trained in uint8 with 2018's tools, and quantized after training.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/host/file.h"
#include "base/host/testing.h"
#include "compiler/backend/run_for_test.h"
#include "compiler/import/import.h"

namespace talpa::compiler {
namespace {

std::vector<std::uint8_t> read(const std::filesystem::path& path) {
    const auto bytes = host::read_file(path);
    EXPECT_TRUE(bytes.has_value()) << path;
    return bytes ? std::vector<std::uint8_t>(bytes->begin(), bytes->end()) : std::vector<std::uint8_t>();
}

std::vector<std::vector<std::uint8_t>> recorded(const std::filesystem::path& folder, const nlohmann::json& ports) {
    std::vector<std::vector<std::uint8_t>> all;
    for (const auto& port : ports) all.push_back(read(folder / port.at("file").get<std::string>()));
    return all;
}

void expect_recorded_bytes(const std::filesystem::path& folder, const std::string& name, std::uint64_t sram) {
    SCOPED_TRACE(name + ", SRAM " + (sram == kUnlimited ? "unlimited" : std::to_string(sram)));
    const auto facts = nlohmann::json::parse(read(folder / (name + ".json")));
    const auto graph = import::import_model(folder / (name + ".tflite"));
    ASSERT_TRUE(graph.has_value()) << graph.error().describe();
    CompileOptions options;
    options.target.sram_bytes = sram;
    const bool large = name.starts_with("mobilenet_v2") || name.starts_with("tf2");
    const auto result =
        testing::compile_and_run(*graph, recorded(folder, facts.at("inputs")), options, /*strict=*/!large);
    ASSERT_TRUE(result.has_value()) << result.error().describe();
    const auto wanted = recorded(folder, facts.at("outputs"));
    ASSERT_EQ(result->outputs.size(), wanted.size());
    // The NPU's softmax is int8; the older models end in a uint8 one.
    EXPECT_EQ(result->report.cpu_nodes.size(), name.ends_with("_quant") ? 1u : 0u);
    for (std::size_t o = 0; o < wanted.size(); ++o) {
        const auto& got = result->outputs[o];
        ASSERT_EQ(got.size(), wanted[o].size()) << "output " << o;
        // An output of one value would agree with anything that is stuck.
        EXPECT_NE(std::ranges::min(wanted[o]), std::ranges::max(wanted[o])) << "output " << o;
        for (std::size_t i = 0; i < got.size(); ++i)
            ASSERT_EQ(int{got[i]}, int{wanted[o][i]}) << "output " << o << ", byte " << i;
    }
}

TEST(TfLiteNetworks, GiveLiteRtsBytes) {
    TALPA_NEEDS_REFERENCE();
    for (const std::string name :
         {"split_concat", "mobilenet_v1_0.25_128_quant", "mobilenet_v2_1.0_224_quant", "tf2_mobilenet_v2_1.0_224_ptq"})
        expect_recorded_bytes(reference / "tflite", name, kUnlimited);
}

// The i.MX 93's 384 KiB: other tiles, other addresses, the same bytes.
TEST(TfLiteNetworks, GiveLiteRtsBytesInTheSramOfTheChip) {
    TALPA_NEEDS_REFERENCE();
    for (const std::string name : {"split_concat", "mobilenet_v1_0.25_128_quant", "tf2_mobilenet_v2_1.0_224_ptq"})
        expect_recorded_bytes(reference / "tflite", name, 384 << 10);
}

}  // namespace
}  // namespace talpa::compiler
