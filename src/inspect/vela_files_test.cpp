// Files in Vela's forms. tests/golden/inspect has what Vela 5.2 itself wrote for the network of int8_io_conv.pte (its
// debug database without the tables that are not read, its summary): names and numbers are held against those.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/host/file.h"
#include "base/host/testing.h"
#include "inspect/debug_map.h"
#include "inspect/report.h"
#include "inspect/report_json.h"
#include "inspect/summary_csv.h"
#include "runtime/operators/all.h"

namespace talpa::inspect {
namespace {

using ::testing::HasSubstr;

std::filesystem::path golden(const char* name) {
    return talpa::testing::golden_folder() / name;
}

DebugMap velas() {
    const auto text = host::read_text(golden("inspect/int8_io_conv.vela_debug.xml"), 1 << 20);
    EXPECT_TRUE(text);
    auto map = read_debug_map(*text, "vela.xml");
    EXPECT_TRUE(map) << map.error().describe();
    return std::move(*map);
}

Report report_of(const DebugMap* map) {
    Options options;
    options.operators = runtime::all_operators();
    options.debug_map = map;
    return inspect_file(golden("ops/int8_io_conv/int8_io_conv.pte"), options).value();
}

TEST(DebugMap, VelasOwnNamesTheOperationsOfItsProgram) {
    const DebugMap map = velas();
    EXPECT_EQ(map.streams, (std::vector<std::uint32_t>{1}));
    EXPECT_EQ(map.queue.size(), 6u);
    const Report report = report_of(&map);
    const auto& d = report.main_method().delegates[0];
    std::vector<std::string> convolutions;
    for (std::size_t i = 0; i < d.network->operations.size(); ++i) {
        if (d.network->operations[i].kind == npu::OpKind::Conv) convolutions.push_back(d.nodes[i]);
        if (npu::is_kernel(d.network->operations[i].kind)) {
            EXPECT_NE(d.nodes[i], "") << i;
        }
    }
    EXPECT_EQ(convolutions, (std::vector<std::string>{"tosa_rescale_default", "tosa_rescale_default_1"}));
    // All copies of a transpose have its name, though only the last of them is listed.
    EXPECT_EQ(d.nodes[0], "#75");
    EXPECT_EQ(d.nodes[1], "tosa_transpose_default");
    const auto json = report_json(report);
    EXPECT_EQ(json["delegates"][0]["layers"][1]["node"], "tosa_transpose_default");
    EXPECT_EQ(json["delegates"][0]["operations"][0]["node"], "#75");
    EXPECT_FALSE(report_json(report_of(nullptr))["delegates"][0]["operations"][0].contains("node"));
}

/// The line of column names of a table.
std::string columns_of(const std::string& xml, const std::string& table) {
    const auto at = xml.find("<table name=\"" + table + "\">");
    const auto from = xml.find("CDATA[\n", at) + 7;
    return at == std::string::npos ? "" : xml.substr(from, xml.find('\n', from) - from);
}

TEST(DebugMap, WhatWeWriteHasVelasTablesAndColumnsAndComesBack) {
    DebugMap map;
    map.model = "a<b>\"&c";
    map.streams = {1, 2};
    map.source = {{.id = 1,
                   .key = 7,
                   .name = "conv2d",
                   .kernel_width = 3,
                   .kernel_height = 5,
                   .width = 10,
                   .height = 20,
                   .depth = 30}};
    map.optimised = {{.id = 4,
                      .key = 1,
                      .name = "CONV",
                      .kernel_width = 3,
                      .kernel_height = 5,
                      .width = 10,
                      .height = 20,
                      .depth = 30}};
    map.queue = {{.offset = 100, .stream = 2, .optimised = 4, .scheduled = 9}};
    map.performance = {{.scheduled = 9,
                        .source = 1,
                        .optimised = 4,
                        .kind = "Conv",
                        .name = "say \"x\", ]]>\n<y>",
                        .staging_bytes = 11,
                        .cycles = 12,
                        .npu_cycles = 13,
                        .macs = 14,
                        .sram_cycles = 15,
                        .dram_cycles = 16}};
    const std::string xml = debug_map_xml(map);
    const auto back = read_debug_map(xml, "ours.xml");
    ASSERT_TRUE(back) << back.error().describe();
    DebugMap named = *back;
    named.model = map.model;  // is not read
    EXPECT_EQ(debug_map_xml(named), xml);
    EXPECT_EQ(back->source[0].kernel_height, 5u);
    EXPECT_EQ(back->performance[0].dram_cycles, 16u);
    const std::uint32_t offsets[] = {96, 100, 104};
    EXPECT_EQ(back->nodes_of(1, offsets), (std::vector<std::string>{"say \"x\", ]] > <y>", "say \"x\", ]] > <y>", ""}));
    EXPECT_EQ(back->nodes_of(0, offsets)[1], "");
    // Where there are no names, kind and number of the source are one.
    DebugMap bare = *back;
    bare.performance.clear();
    EXPECT_EQ(bare.nodes_of(1, offsets)[1], "conv2d 7");

    const auto velas_text = host::read_text(golden("inspect/int8_io_conv.vela_debug.xml"), 1 << 20).value();
    for (const char* table : {"source", "optimised", "cmdstream", "queue"})
        EXPECT_EQ(columns_of(xml, table), columns_of(velas_text, table)) << table;
    // Of costs we know no cycles of the shared RAM.
    std::string perf = columns_of(velas_text, "perf");
    const std::string shram = ",\"shram_ac\"";
    ASSERT_NE(perf.find(shram), std::string::npos);
    EXPECT_EQ(columns_of(xml, "perf"), perf.erase(perf.find(shram), shram.size()));
}

TEST(DebugMap, BrokenFilesAreRefusedByTableAndRow) {
    const auto said = [](const std::string& tables) {
        const auto map = read_debug_map("<debug source=\"x\">" + tables + "</debug>", "x.xml");
        return map ? std::string("read") : map.error().describe();
    };
    const std::string queue =
        "<table name=\"queue\">\n<![CDATA[\n\"offset\",\"cmdstream_id\",\"optimised_id\",\"scheduled_id\"\n";
    EXPECT_EQ(said(queue + "4,1,2,3\n]]>\n</table>"), "read");
    EXPECT_THAT(said(queue + "4,1,2,3\n"), HasSubstr("x.xml: table 'queue' has no end"));
    EXPECT_THAT(said(queue + "4,1,2\n]]>"), HasSubstr("table 'queue', line 3: 3 values in 4 columns"));
    EXPECT_THAT(said(queue + "4,1,two,3\n]]>"), HasSubstr("'two' in column 'optimised_id' is no number"));
    EXPECT_THAT(said(queue + "-4,1,2,3\n]]>"), HasSubstr("'-4' in column 'offset'"));
    EXPECT_THAT(said(queue + "\"4,1,2,3\n]]>"), HasSubstr("a quotation mark is missing"));
    EXPECT_THAT(said(""), HasSubstr("no table 'queue'"));
    EXPECT_THAT(said("<table name=\"queue"), HasSubstr("no end"));
    EXPECT_FALSE(read_debug_map("hello", "x.xml"));
}

std::map<std::string, std::string> cells(const std::string& csv, std::vector<std::string>* order = nullptr) {
    const auto split = [](const std::string& line) {
        std::vector<std::string> parts(1);
        for (const char c : line) {
            if (c == ',')
                parts.emplace_back();
            else
                parts.back() += c;
        }
        return parts;
    };
    const auto end = csv.find('\n');
    const auto names = split(csv.substr(0, end)),
               values = split(csv.substr(end + 1, csv.find('\n', end + 1) - end - 1));
    std::map<std::string, std::string> out;
    for (std::size_t i = 0; i < names.size() && i < values.size(); ++i) out[names[i]] = values[i];
    if (order != nullptr) *order = names;
    return out;
}

TEST(SummaryCsv, ColumnsAreVelasAndSoAreTheirMeanings) {
    std::vector<std::string> theirs_order, ours_order;
    const auto theirs =
        cells(host::read_text(golden("inspect/int8_io_conv.vela_summary.csv"), 1 << 16).value(), &theirs_order);
    const auto ours = cells(summary_csv(report_of(nullptr), "int8_io_conv.0"), &ours_order);
    auto at = theirs_order.begin();
    for (const auto& name : ours_order) {
        at = std::find(at, theirs_order.end(), name);
        ASSERT_NE(at, theirs_order.end()) << name << " is no column of Vela's, or stands elsewhere";
    }
    for (const char* same :
         {"experiment", "network", "accelerator_configuration", "system_config", "memory_mode", "core_clock",
          "sram_bandwidth", "dram_bandwidth", "weights_storage_area", "feature_map_storage_area", "batch_size",
          "total_original_weights", "total_npu_encoded_weights", "nn_macs"})
        EXPECT_EQ(ours.at(same), theirs.at(same)) << same;
    // Units: seconds, KiB; figures of another cycle model on the same program.
    const auto number = [](const std::map<std::string, std::string>& m, const char* name) {
        return std::stod(m.at(name));
    };
    EXPECT_DOUBLE_EQ(number(ours, "inference_time"), number(ours, "cycles_total") / number(ours, "core_clock"));
    EXPECT_NEAR(number(ours, "inferences_per_second") * number(ours, "inference_time"), 1, 1e-9);
    EXPECT_NEAR(number(ours, "nn_tops"), 2 * number(ours, "nn_macs") / number(ours, "inference_time") / 1e12, 1e-9);
    EXPECT_NEAR(number(ours, "sram_memory_used"), number(theirs, "sram_memory_used"), 1);
    EXPECT_GE(number(ours, "dram_memory_used"), number(theirs, "dram_memory_used"));  // the command stream not counted
}

}  // namespace
}  // namespace talpa::inspect
