// Expected values: pte-format, section 14 (numbers read from these files by other readers) and the compiler's own
// statistics in the reference programs' .json.
#include "inspect/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/host/file.h"
#include "base/host/json.h"
#include "base/host/testing.h"
#include "inspect/report_json.h"
#include "inspect/report_text.h"
#include "runtime/operators/all.h"

namespace talpa::inspect {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Options with_operators() {
    Options options;
    options.operators = runtime::all_operators();
    return options;
}

Report variant(const char* file) {
    return inspect_file(talpa::testing::golden_folder() / "pte_variants" / file, with_operators()).value();
}

struct Recorded {
    std::string name;
    Report report;
    host::Json compiler;
};

// Programs with one delegate and the compiler's statistics: those of the repository, or of the whole reference set.
std::vector<Recorded> recorded(const char* kind) {
    const auto reference = talpa::testing::reference_folder();
    std::vector<Recorded> found;
    for (const auto& entry :
         std::filesystem::directory_iterator((reference ? *reference : talpa::testing::golden_folder()) / kind)) {
        if (!entry.is_directory()) continue;
        const std::string name = entry.path().filename();
        const auto json = host::Json::parse(host::read_text(entry.path() / (name + ".json")).value());
        if (json.contains("vela_estimate") && !json["vela_estimate"].is_null())
            found.push_back(
                {name, inspect_file(entry.path() / (name + ".pte"), with_operators()).value(), json["vela_estimate"]});
    }
    return found;
}

TEST(Report, TwoConvolutionsInASegment) {
    const Report r = variant("two_seg.pte");
    EXPECT_EQ(r.bytes, 6224u);
    EXPECT_EQ(r.identifier, "ET12");
    EXPECT_TRUE(r.frame.has_header);
    EXPECT_EQ(r.frame.header_length, 32u);
    EXPECT_EQ(r.frame.flatbuffer_size, 2296u);
    EXPECT_EQ(r.frame.segment_base, 2304u);
    EXPECT_THAT(r.segments, ElementsAre(std::pair(0u, 0u), std::pair(0u, 3920u)));
    const MethodReport& m = r.main_method();
    EXPECT_EQ(m.name, "forward");
    EXPECT_THAT(m.arenas, ElementsAre(0, 5120));
    EXPECT_THAT(m.inputs.at(0).sizes, ElementsAre(1, 3, 16, 16));
    EXPECT_THAT(m.outputs.at(0).sizes, ElementsAre(1, 16, 8, 8));
    const DelegateReport& d = m.delegates.at(0);
    EXPECT_EQ(d.location, "segment 1");
    EXPECT_EQ(d.scratch_bytes, 1024u);
    EXPECT_EQ(d.fast_scratch_bytes, 3696u);
    EXPECT_EQ(d.constant_bytes, 1904u);
    EXPECT_EQ(d.stream_bytes, 412u * 4);
    EXPECT_EQ(d.npu, "ethos-u65-256");
    EXPECT_EQ(d.memory_mode, "Dedicated_Sram_384KB");
    ASSERT_EQ(d.blocks.size(), 7u);
    EXPECT_EQ(d.blocks[1].name, "cmd_data");
    EXPECT_EQ(d.blocks[1].bytes, 1680u);
}

TEST(Report, PlanNamesOperatorsAndTheirArguments) {
    const MethodReport m = variant("fallback.pte").main_method();
    ASSERT_EQ(m.plan.size(), 7u);
    EXPECT_EQ(m.plan[0].op, "quantized_decomposed::quantize_per_tensor.out");
    EXPECT_EQ(m.plan[3].text, "aten::flip.out(%8, [3]) -> %15");
    EXPECT_EQ(m.plan[5].kind, "DelegateCall");
    EXPECT_EQ(m.plan[5].delegate, 1);
    EXPECT_EQ(m.delegates.size(), 2u);
}

TEST(Report, JumpsAndMovesAreReadable) {
    const MethodReport m = variant("cond.pte").main_method();
    EXPECT_EQ(m.plan[0].text, "if not %0: go to 5");
    EXPECT_EQ(m.plan[3].text, "%2 = %7");
    ASSERT_TRUE(m.memory) << m.problem;
    EXPECT_EQ(m.memory->planned_total() % 16, 0u);
    EXPECT_EQ(m.memory->scratch, 0u);
}

TEST(Report, InputsAndOutputsOfADelegate) {
    const DelegateReport d = variant("multi.pte").main_method().delegates.at(0);
    ASSERT_EQ(d.inputs.size(), 2u);
    EXPECT_EQ(d.inputs[0].offset, 0u);
    EXPECT_EQ(d.inputs[1].offset, 192u);
    EXPECT_EQ(d.outputs[0].offset, 512u);
    EXPECT_EQ(d.outputs[1].offset, 0u);
    EXPECT_EQ(d.scratch_bytes, 1024u);
    // Each output is written by a layer, each input read by one.
    ASSERT_TRUE(d.network);
    ASSERT_EQ(d.network->outputs.size(), 2u);
    for (const auto& layers : d.network->outputs) EXPECT_FALSE(layers.empty());
    for (const int input : {-2, -3})
        EXPECT_TRUE(std::ranges::any_of(d.network->layers, [&](const Layer& l) {
            return std::ranges::find(l.inputs, input) != l.inputs.end();
        })) << input;
}

TEST(Report, QuantizationOfPortsIsKnownFromConstantMethods) {
    const Report r = variant("two_qio.pte");
    ASSERT_TRUE(r.main_method().inputs.at(0).quantization);
    EXPECT_GT(r.main_method().inputs[0].quantization->scale, 0);
    EXPECT_TRUE(std::ranges::any_of(r.methods, &MethodReport::constant));
    EXPECT_EQ(r.main_method().name, "forward");
}

TEST(Report, AnotherNpuIsAProblemOfTheDelegateOnly) {
    const Report r = variant("two_u85.pte");
    const DelegateReport& d = r.main_method().delegates.at(0);
    EXPECT_THAT(d.problem, HasSubstr("ethos-u85"));
    EXPECT_FALSE(d.network);
    EXPECT_EQ(d.blocks.at(1).name, "cmd_data");
    EXPECT_THAT(report_text(r), HasSubstr("ethos-u85"));
    EXPECT_EQ(report_json(r)["delegates"][0]["problem"], d.problem);
}

TEST(Report, TheHintOfAProblemIsALineOfItsOwn) {
    Options options = with_operators();
    options.machine = [](const std::string&, const std::string&, const std::string&) {
        return std::unexpected(host::Error(ErrorCode::NotFound, "no system 'a\x1b[31m'", "ask for one of: b, c"));
    };
    const auto file = talpa::testing::golden_folder() / "pte_variants/multi.pte";
    const Report r = inspect_file(file, options).value();
    EXPECT_THAT(report_text(r), HasSubstr("    no system 'a?[31m' (NotFound)\n      ask for one of: b, c\n"));
    EXPECT_EQ(report_json(r)["delegates"][0]["problem"], "no system 'a?[31m' (NotFound)\n  ask for one of: b, c");
}

TEST(Report, U55IsEstimatedForItsOwnSystem) {
    const DelegateReport d = variant("two_u55.pte").main_method().delegates.at(0);
    EXPECT_EQ(d.npu, "ethos-u55-128");
    EXPECT_EQ(d.config.profile, "Ethos_U55_High_End_Embedded");
    EXPECT_EQ(d.config.mode, "Shared_Sram");
    EXPECT_TRUE(d.fast_is_scratch);
    ASSERT_TRUE(d.network);
}

TEST(Report, TheSystemCanBeChosenAndMustExist) {
    Options options = with_operators();
    options.system = "Client_Server";
    const auto path = talpa::testing::golden_folder() / "pte_variants" / "two_seg.pte";
    const auto fast = inspect_file(path, options);
    ASSERT_TRUE(fast);
    EXPECT_LT(fast->main_method().delegates[0].network->cost.cycles_total,
              variant("two_seg.pte").main_method().delegates[0].network->cost.cycles_total);
    options.system = "Nowhere";
    const auto unknown = inspect_file(path, options);
    ASSERT_FALSE(unknown);
    EXPECT_THAT(unknown.error().message, HasSubstr("Nowhere"));
}

TEST(Report, NoProgramIsAnErrorThatNamesTheFile) {
    const auto missing = inspect_file("/nonexistent/x.pte", with_operators());
    ASSERT_FALSE(missing);
    EXPECT_THAT(missing.error().describe(), HasSubstr("/nonexistent/x.pte"));
}

TEST(Layers, WeightsEncodedAndRawAreTheCompilers) {
    for (const char* kind : {"models", "ops"})
        for (const Recorded& p : recorded(kind)) {
            const Network& n = *p.report.main_method().delegates.at(0).network;
            std::uint64_t encoded = 0, raw = 0;
            for (const Layer& l : n.layers) encoded += l.weight_bytes, raw += l.raw_weight_bytes;
            EXPECT_EQ(static_cast<double>(encoded), p.compiler["total_npu_encoded_weights"].get<double>()) << p.name;
            // The compiler's raw count includes channels that it added to a few layers.
            EXPECT_NEAR(static_cast<double>(raw), p.compiler["total_original_weights"].get<double>(),
                        0.03 * static_cast<double>(raw) + 24)
                << p.name;
        }
}

TEST(Layers, EveryOperationIsInOneLayer) {
    for (const Recorded& p : recorded("models")) {
        const Network& n = *p.report.main_method().delegates.at(0).network;
        std::vector<int> seen(n.operations.size(), 0);
        for (const Layer& l : n.layers)
            for (const std::size_t i : l.operations) ++seen[i];
        for (std::size_t i = 0; i < n.operations.size(); ++i) {
            const auto kind = n.operations[i].kind;
            EXPECT_EQ(seen[i], npu::is_kernel(kind) || kind == npu::OpKind::Dma ? 1 : 0)
                << p.name << " operation " << i;
        }
    }
}

TEST(Layers, ResNetHasItsShortcuts) {
    const auto programs = recorded("models");
    const auto resnet = std::ranges::find(programs, "resnet8_random", &Recorded::name);
    ASSERT_NE(resnet, programs.end());
    const Network& n = *resnet->report.main_method().delegates.at(0).network;
    std::vector<std::string> names;
    std::size_t adds = 0;
    for (const Layer& l : n.layers) {
        names.push_back(l.name);
        if (l.name != "Add") continue;
        ++adds;
        EXPECT_EQ(l.inputs.size(), 2u);
    }
    // Nine convolutions (two of them 1x1 shortcuts), three additions, a pool, a classifier, and the picture's
    // transpose.
    EXPECT_EQ(adds, 3u);
    EXPECT_EQ(std::ranges::count(names, "Conv 3x3") + std::ranges::count(names, "Conv 3x3 s2"), 7);
    EXPECT_EQ(std::ranges::count(names, "Conv 1x1 s2"), 2);
    EXPECT_EQ(names.back(), "Fully connected");
    EXPECT_THAT(n.outputs.at(0), ElementsAre(static_cast<int>(n.layers.size()) - 1));
}

TEST(Layers, LiveRangesLieInTheirRegions) {
    for (const Recorded& p : recorded("models")) {
        const DelegateReport& d = p.report.main_method().delegates.at(0);
        std::int64_t peak = 0;
        for (const TensorRange& r : d.network->ranges) {
            EXPECT_LE(r.from_cycle, r.to_cycle);
            EXPECT_LE(r.to_cycle, d.network->cost.cycles_total);
            EXPECT_TRUE(r.region != 1 || r.end <= static_cast<std::int64_t>(d.scratch_bytes));
            if (r.region == 2) peak = std::max(peak, r.end);
        }
        EXPECT_EQ(peak, static_cast<std::int64_t>(d.fast_scratch_bytes)) << p.name;
    }
}

TEST(ReportJson, HasTheKeysThatToolsRelyOn) {
    const auto j = report_json(variant("two_seg.pte"));
    EXPECT_TRUE(j.contains("memory"));
    const auto& d = j["delegates"].at(0);
    EXPECT_GT(d["cycles_total"].get<std::uint64_t>(), 0u);
    EXPECT_GT(d["sram_bytes"].get<std::uint64_t>(), 0u);
    EXPECT_GT(d["dram_bytes"].get<std::uint64_t>(), 0u);
    EXPECT_EQ(d["operations"].size(), 45u);  // 412 words: 41 pools, 2 convolutions, 2 DMAs
    EXPECT_EQ(d["operations"].back()["ofm"]["shape"], host::Json({8, 8, 1}));
    EXPECT_EQ(host::Json::parse(json_text(j)), j);
}

TEST(ReportText, IsPlainUnlessColoursAreWanted) {
    const Report r = variant("fallback.pte");
    EXPECT_THAT(report_text(r), Not(HasSubstr("\x1b")));
    EXPECT_THAT(report_text(r, {.colours = true}), HasSubstr("\x1b["));
    const std::string all = report_text(r, {.operations = true});
    EXPECT_THAT(all, HasSubstr("Operations"));
    EXPECT_GT(all.size(), report_text(r).size());
}

}  // namespace
}  // namespace talpa::inspect
