// The quantized networks of the reference set, compiled, against the outputs recorded there: every byte, softmax within
// one output step. Which networks are known to pass is written down, so that none is lost.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "base/host/file.h"
#include "base/host/testing.h"
#include "compiler/backend/run_for_test.h"
#include "compiler/import/import.h"
#include "npu_model/cycles/network_cost.h"

namespace talpa::compiler {
namespace {

std::vector<std::uint8_t> read(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

struct Outcome {
    std::string error;       // empty if it compiled and ran
    std::size_t differ = 0;  // bytes, or float32 numbers
    double largest = 0;      // difference of float32 numbers
    CompileReport report;
    std::size_t pte_bytes = 0;
};

Outcome run_network(const std::filesystem::path& folder, const std::string& model, IoType io,
                    std::uint64_t sram = kUnlimited, const std::filesystem::path& data = {},
                    const std::optional<Target>& target = {}) {
    Outcome o;
    auto graph = import::import_model(folder / (model + ".quantized.pt2"));
    if (!graph) {
        o.error = graph.error().describe();
        return o;
    }
    const std::filesystem::path from = data.empty() ? folder : data;
    std::vector<std::vector<std::uint8_t>> inputs;
    for (std::size_t i = 0; i < graph->inputs.size(); ++i)
        inputs.push_back(read(from / ("in" + std::to_string(i) + ".bin")));
    CompileOptions options;
    options.io = io;
    options.target.sram_bytes = sram;
    if (target) options.target = *target;
    const char* dump = std::getenv("TALPA_DUMP");
    if (dump != nullptr) {
        options.dump_after = dump;
        const auto compiled = compile(*graph, options);
        if (compiled) std::fputs(compiled->report.dump.c_str(), stderr);
    }
    const bool large = folder.parent_path().filename() == "models";
    auto result = testing::compile_and_run(*graph, inputs, options, !large);
    if (!result) {
        o.error = result.error().describe();
        return o;
    }
    o.report = std::move(result->report);
    o.pte_bytes = result->pte_bytes;
    for (std::size_t i = 0; i < result->outputs.size(); ++i) {
        const auto wanted = read(from / ("out" + std::to_string(i) + ".bin"));
        const auto& got = result->outputs[i];
        if (wanted.size() != got.size()) {
            o.error = "output " + std::to_string(i) + " has " + std::to_string(got.size()) + " bytes, wanted " +
                      std::to_string(wanted.size());
            return o;
        }
        const bool real = !(*graph)[graph->outputs[i]].quantization && io != IoType::Quantized &&
                          (*graph)[graph->outputs[i]].type == DType::Float32;
        for (std::size_t at = 0; at < got.size(); at += real ? 4 : 1) {
            if (std::memcmp(got.data() + at, wanted.data() + at, real ? 4 : 1) == 0) continue;
            ++o.differ;
            if (!real) continue;
            float a, b;
            std::memcpy(&a, got.data() + at, 4);
            std::memcpy(&b, wanted.data() + at, 4);
            o.largest = std::max(o.largest, std::abs(double{a} - b));
        }
    }
    return o;
}

double vela_cycles(const std::filesystem::path& folder, const std::string& model) {
    const auto json = nlohmann::json::parse(read(folder / (model + ".json")));
    return json.contains("vela_estimate") ? json["vela_estimate"].value("cycles_total", 0.0) : 0.0;
}

void show(const std::string& name, const Outcome& o, double vela) {
    std::uint64_t cycles = 0, arena = 0, fast = 0;
    for (const auto& d : o.report.delegates) {
        cycles += d.cycles;
        arena += d.arena_bytes;
        fast += d.fast_bytes;
    }
    std::printf(
        "%-28s %-9s %10llu cycles (Vela's %10.0f) scratch %8llu fast %8llu  pte %8zu  delegates %zu cpu %zu %s\n",
        name.c_str(),
        !o.error.empty() ? "ERROR"
        : o.differ != 0  ? "DIFFERS"
                         : "same",
        static_cast<unsigned long long>(cycles), vela, static_cast<unsigned long long>(arena),
        static_cast<unsigned long long>(fast), o.pte_bytes, o.report.delegates.size(), o.report.cpu_nodes.size(),
        o.error.substr(0, 600).c_str());
}

void expect_same(const std::string& name, const Outcome& o) {
    EXPECT_TRUE(o.error.empty()) << name << ": " << o.error;
    EXPECT_EQ(o.differ, 0u) << name << ": largest difference " << o.largest;
}

/// No more memory and cycles than Vela's program of the same network takes, by one model of cycles, and none longer.
void expect_no_larger(const std::filesystem::path& folder, const std::string& name, const Outcome& o,
                      const Target& target = {}) {
    const auto vela = read(folder / (name + ".pte"));
    EXPECT_LE(o.pte_bytes, vela.size()) << name;
    runtime::host::SessionOptions options;
    options.operators = runtime::all_operators();
    auto session = runtime::host::Session::open(talpa::Bytes(vela), name, options);
    ASSERT_TRUE(session) << session.error().describe();
    std::uint64_t arena = 0, fast = 0, cycles = 0, velas_arena = 0, velas_fast = 0, velas_cycles = 0;
    for (const auto& d : session->method().delegates()) {
        const auto operations = npu_model::decode_all(d.stream());
        ASSERT_TRUE(operations) << operations.error().describe();
        velas_cycles += npu_model::network_cost(*operations, target.config).cycles_total;
        velas_arena = std::max<std::uint64_t>(velas_arena, d.scratch_bytes());
        velas_fast = std::max<std::uint64_t>(velas_fast, d.fast_scratch_bytes());
    }
    for (const auto& d : o.report.delegates) {
        arena = std::max(arena, d.arena_bytes);
        fast = std::max(fast, d.fast_bytes);
        cycles += d.cycles;
    }
    EXPECT_LE(arena, velas_arena) << name;
    EXPECT_LE(fast, (velas_fast + 15) / 16 * 16) << name;  // the plan's is a multiple of 16
    EXPECT_LE(cycles, velas_cycles) << name;
}

TEST(ReferenceNetworks, EveryOperatorNetworkGivesTheRecordedBytes) {
    TALPA_NEEDS_REFERENCE();
    const auto root = reference / "ops";
    std::vector<std::filesystem::path> folders;
    for (const auto& entry : std::filesystem::directory_iterator(root)) folders.push_back(entry.path());
    std::sort(folders.begin(), folders.end());
    for (const auto& folder : folders) {
        const std::string name = folder.filename().string();
        if (!std::filesystem::exists(folder / (name + ".quantized.pt2"))) continue;
        // Two were compiled for another memory mode, and other memories.
        const MemoryMode mode = name == "sram_only"     ? MemoryMode::SramOnly
                                : name == "shared_sram" ? MemoryMode::SharedSram
                                                        : MemoryMode::DedicatedSram;
        const bool usual = mode == MemoryMode::DedicatedSram;
        const Target target =
            make_target("ethos-u65-256", usual ? "Ethos_U65_High_End" : "Ethos_U65_Embedded", mode, kUnlimited).value();
        const Outcome o =
            run_network(folder, name, name == "int8_io_conv" ? IoType::Quantized : IoType::AsModel, 0, {}, target);
        show(name, o, vela_cycles(folder, name));
        expect_no_larger(folder, name, o, target);
        if (name == "softmax") {
            EXPECT_TRUE(o.error.empty()) << o.error;
            EXPECT_LE(o.largest, 0.0040) << "one step of the output is 1/256";
            continue;
        }
        expect_same(name, o);
    }
}

TEST(ReferenceNetworks, WholeNetworksGiveTheRecordedBytes) {
    TALPA_NEEDS_REFERENCE();
    for (const std::string name :
         {"ds_cnn_random", "resnet8_random", "mobilenet_v2", "mobilenet_v3_small_random", "efficientnet_lite0"}) {
        const Outcome o = run_network(reference / "models" / name, name, IoType::AsModel);
        show(name, o, vela_cycles(reference / "models" / name, name));
        expect_same(name, o);
        expect_no_larger(reference / "models" / name, name, o);
    }
}

// TALPA_EVERY_NETWORK=1: the large ones too, ten seconds.
TEST(ReferenceNetworks, WholeNetworksGiveTheRecordedBytesOnEveryPart) {
    TALPA_NEEDS_REFERENCE();
    std::vector<std::string> names{"ds_cnn_random", "resnet8_random"};
    if (std::getenv("TALPA_EVERY_NETWORK") != nullptr)
        names.insert(names.end(), {"mobilenet_v2", "mobilenet_v3_small_random", "efficientnet_lite0"});
    for (const std::string& name : names)
        for (const char* part : {"ethos-u55-32", "ethos-u55-64", "ethos-u55-128", "ethos-u55-256", "ethos-u65-512"}) {
            const bool large = std::string_view(part) == "ethos-u65-512";
            const auto target =
                make_target(part, "High_End", large ? MemoryMode::DedicatedSram : MemoryMode::SharedSram,
                            large ? 384 << 10 : 2 << 20);
            ASSERT_TRUE(target) << target.error().describe();
            const Outcome o = run_network(reference / "models" / name, name, IoType::AsModel, 0, {}, *target);
            show(name + ", " + part, o, 0);
            expect_same(name + ", " + part, o);
            EXPECT_EQ(o.report.delegates.size(), 1u) << name << ", " << part;
        }
}

TEST(ReferenceNetworks, OptimizedForSizeItTakesLessMemory) {
    TALPA_NEEDS_REFERENCE();
    const std::string name = "resnet8_random";
    std::uint64_t bytes[2] = {}, cycles[2] = {};
    for (const bool size : {false, true}) {
        Target target = make_target("ethos-u65-256", "High_End", MemoryMode::DedicatedSram, 384 << 10).value();
        target.optimize = size ? Optimize::Size : Optimize::Speed;
        const Outcome o = run_network(reference / "models" / name, name, IoType::AsModel, 0, {}, target);
        show(name, o, 0);
        expect_same(name, o);
        ASSERT_EQ(o.report.delegates.size(), 1u);
        bytes[size] = o.report.delegates[0].fast_bytes + o.report.delegates[0].arena_bytes;
        cycles[size] = o.report.delegates[0].cycles;
    }
    EXPECT_LT(bytes[1], bytes[0] * 9 / 10);
    EXPECT_LE(cycles[1], 2 * cycles[0]);
}

// The i.MX 93's 384 KiB.
TEST(ReferenceNetworks, MobileNetV2FitsTheSramOfTheChip) {
    TALPA_NEEDS_REFERENCE();
    const Outcome o = run_network(reference / "models" / "mobilenet_v2", "mobilenet_v2", IoType::Quantized, 384 << 10,
                                  reference / "models" / "mobilenet_v2_sram384");
    show("mobilenet_v2, 384 KiB", o,
         vela_cycles(reference / "models" / "mobilenet_v2_sram384", "mobilenet_v2_sram384"));
    expect_same("mobilenet_v2, 384 KiB", o);
    expect_no_larger(reference / "models" / "mobilenet_v2_sram384", "mobilenet_v2_sram384", o);
    ASSERT_EQ(o.report.delegates.size(), 1u);
    EXPECT_LE(o.report.delegates[0].fast_bytes, 384u << 10);
    for (const std::string name : {"mobilenet_v3_small_random", "efficientnet_lite0", "resnet8_random"}) {
        const Outcome other = run_network(reference / "models" / name, name, IoType::AsModel, 384 << 10);
        show(name + ", 384 KiB", other, vela_cycles(reference / "models" / name, name));
        expect_same(name, other);
    }
}

}  // namespace
}  // namespace talpa::compiler
