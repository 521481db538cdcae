// Vela's configuration files. What the format means was taken from Vela 5.2 itself, run on files like these with
// --verbose-config: defaults, inheritance over several levels, DEFAULT sections, the areas that it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/host/file.h"
#include "base/host/testing.h"
#include "compiler/vela/system.h"

namespace talpa::compiler::vela {
namespace {

using ::testing::HasSubstr;

Ini ini_of(const std::string& text, const std::string& name = "my.ini") {
    Ini ini;
    const auto added = ini.add(text, name);
    EXPECT_TRUE(added) << added.error().describe();
    return ini;
}

std::string complaint(const std::string& text, const std::string& system, const std::string& mode) {
    Ini ini;
    if (const auto added = ini.add(text, "my.ini"); !added) return added.error().describe();
    const auto target = make_target({.system = system, .memory_mode = mode, .files = {"my.ini"}}, ini);
    return target ? "accepted" : target.error().describe();
}

TEST(VelaIni, ThePublishedHighEndWrittenAsAFileIsThePublishedHighEnd) {
    const auto file = talpa::testing::golden_folder().parent_path() / "corpus/vela_ini_fuzz/high_end.ini";
    std::vector<std::string> warnings;
    const auto own = make_target({.system = "My_High_End", .memory_mode = "Mine_384", .files = {file}}, &warnings);
    ASSERT_TRUE(own) << own.error().describe();
    EXPECT_TRUE(warnings.empty());
    const auto& standard = npu_model::default_system_config();
    EXPECT_EQ(own->config.clock_hz, standard.clock_hz);
    for (std::size_t area = 0; area < npu_model::kMemoryAreas; ++area) {
        const auto &a = own->config.memory[area], &b = standard.memory[area];
        EXPECT_EQ(a.bytes_per_cycle, b.bytes_per_cycle);
        EXPECT_EQ(a.burst_bytes, b.burst_bytes);
        EXPECT_EQ(a.read_latency, b.read_latency);
        EXPECT_EQ(a.write_latency, b.write_latency);
        EXPECT_EQ(a.max_reads, b.max_reads);
        EXPECT_EQ(a.max_writes, b.max_writes);
    }
    EXPECT_EQ(own->config.region_area, standard.region_area);
    EXPECT_EQ(own->mode, MemoryMode::DedicatedSram);
    EXPECT_EQ(own->sram_bytes, 393216u);
    EXPECT_EQ(own->config.profile, "My_High_End");
    EXPECT_EQ(own->config.mode, "Mine_384");
}

TEST(VelaIni, WhatAFileDoesNotSayIsWhatVelaTakes) {
    const auto ini = ini_of("[DEFAULT]\nsram_burst_length = 64\n[System_Config.E]\nCore_Clock: 2e8\n[Memory_Mode.E]\n");
    const auto t = make_target({.system = "E", .memory_mode = "E", .files = {}}, ini);
    ASSERT_TRUE(t) << t.error().describe();
    EXPECT_EQ(t->config.clock_hz, 2e8);
    EXPECT_EQ(t->config.memory[0].burst_bytes, 64u);
    EXPECT_EQ(t->config.memory[0].bytes_per_cycle, 16);  // scale 1 of a U65's port
    EXPECT_EQ(t->config.memory[1].burst_bytes, 1u);
    EXPECT_EQ(t->config.memory[1].read_latency, 0u);
    EXPECT_EQ(t->mode, MemoryMode::SharedSram);  // constants on Axi1, arena on Axi0
    EXPECT_EQ(t->sram_bytes, kUnlimited);
    const auto u55 = make_target({.npu = "ethos-u55-128", .system = "E", .memory_mode = "E", .files = {}}, ini);
    ASSERT_TRUE(u55);
    EXPECT_EQ(u55->config.memory[0].bytes_per_cycle, 8);
}

TEST(VelaIni, AU55HasNoArenaBehindItsSecondPortAndNoClocksOfAU65) {
    const Ini none = ini_of("");
    const auto usual = make_target({.npu = "ethos-u55-128", .files = {}}, none);
    ASSERT_TRUE(usual) << usual.error().describe();
    EXPECT_EQ(usual->mode, MemoryMode::SharedSram);
    EXPECT_EQ(make_target({.npu = "ethos-u65-256", .files = {}}, none)->mode, MemoryMode::DedicatedSram);
    for (const char* mode : {"dedicated-sram", "Dedicated_Sram_384KB"}) {
        const auto refused = make_target({.npu = "ethos-u55-32", .memory_mode = mode, .files = {}}, none);
        ASSERT_FALSE(refused);
        EXPECT_THAT(refused.error().describe(), HasSubstr("has no dedicated-sram"));
        EXPECT_THAT(refused.error().hint, HasSubstr("shared-sram"));
    }
    const Ini own = ini_of("[Memory_Mode.M]\nconst_mem_area=Axi1\narena_mem_area=Axi1\ncache_mem_area=Axi0\n");
    EXPECT_FALSE(make_target({.npu = "ethos-u55-256", .memory_mode = "M", .files = {}}, own));
    EXPECT_TRUE(make_target({.npu = "ethos-u65-512", .memory_mode = "M", .files = {}}, own));
    EXPECT_FALSE(make_target({.npu = "ethos-u55-128", .system = "Ethos_U65_High_End", .files = {}}, none));
    EXPECT_FALSE(make_target({.npu = "ethos-u65-256", .system = "Ethos_U55_High_End_Embedded", .files = {}}, none));
    // As a part of the name, and in any case.
    for (const char* system : {"High_End", "ethos_u65_high_end", "mid_end", "Client_Server", "EMBEDDED"}) {
        const auto refused = make_target({.npu = "ethos-u55-128", .system = system, .files = {}}, none);
        ASSERT_FALSE(refused) << system;
        EXPECT_THAT(refused.error().message, HasSubstr("the system 'Ethos_U65_")) << system;
        EXPECT_TRUE(make_target({.npu = "ethos-u65-512", .system = system, .files = {}}, none)) << system;
    }
    for (const char* system : {"High_End_Embedded", "ethos_u55_deep_embedded"}) {
        EXPECT_FALSE(make_target({.npu = "ethos-u65-256", .system = system, .files = {}}, none)) << system;
        EXPECT_TRUE(make_target({.npu = "ethos-u55-64", .system = system, .files = {}}, none)) << system;
    }
    // A section of a file may be called as it likes.
    EXPECT_TRUE(make_target({.npu = "ethos-u55-128", .system = "Ethos_U65_X", .files = {}},
                            ini_of("[System_Config.Ethos_U65_X]\ncore_clock=1e9\n")));
}

// Programs of a U55 that say Dedicated_Sram exist: what they take is worth knowing.
TEST(VelaIni, ToReckonWithAnyPartCanHaveAnyMachine) {
    const Ini none = ini_of("");
    for (const char* system : {"Ethos_U65_High_End", "Ethos_U55_High_End_Embedded"}) {
        const auto found = make_target({.npu = "ethos-u55-128",
                                        .system = system,
                                        .memory_mode = "Dedicated_Sram",
                                        .files = {},
                                        .to_compile_for = false},
                                       none);
        ASSERT_TRUE(found) << found.error().describe();
        EXPECT_EQ(found->config.profile, system);
    }
}

TEST(VelaIni, AChildOverwritesItsParentsOverSeveralLevelsAndLaterFilesEarlierOnes) {
    Ini ini = ini_of(
        "[Memory_Mode.F]\ninherit=Memory_Mode.G\n[Memory_Mode.G]\ninherit = Memory_Mode.H\narena_mem_area=Axi0\n"
        "[Memory_Mode.H]\nconst_mem_area=Axi1\narena_mem_area=Axi1\narena_cache_size=1000\n");
    auto t = make_target({.memory_mode = "F", .files = {}}, ini);
    ASSERT_TRUE(t) << t.error().describe();
    EXPECT_EQ(t->mode, MemoryMode::SharedSram);
    EXPECT_EQ(t->sram_bytes, 1000u);
    ASSERT_TRUE(ini.add("[Memory_Mode.H]\narena_cache_size=2000\n", "later.ini"));
    t = make_target({.memory_mode = "F", .files = {}}, ini);
    ASSERT_TRUE(t);
    EXPECT_EQ(t->sram_bytes, 2000u);
    EXPECT_EQ(ini.names("Memory_Mode."), (std::vector<std::string>{"F", "G", "H"}));
    // --sram counts more than the file.
    t = make_target({.memory_mode = "F", .sram_bytes = 3000, .files = {}}, ini);
    ASSERT_TRUE(t);
    EXPECT_EQ(t->sram_bytes, 3000u);
}

TEST(VelaIni, PublishedNamesNeedNoFile) {
    const auto t = make_target({.memory_mode = "Dedicated_Sram_256KB", .files = {}});
    ASSERT_TRUE(t) << t.error().describe();
    EXPECT_EQ(t->sram_bytes, 256u << 10);
    EXPECT_EQ(t->mode, MemoryMode::DedicatedSram);
    const auto usual = make_target({.memory_mode = "dedicated-sram", .files = {}});
    ASSERT_TRUE(usual);
    EXPECT_EQ(usual->sram_bytes, 384u << 10);
    EXPECT_FALSE(make_target({.memory_mode = "Dedicated_Sram_0KB", .files = {}}));
}

TEST(VelaIni, ErrorsNameFileSectionAndKey) {
    const std::string mode = "[Memory_Mode.D]\nconst_mem_area=Axi1\narena_mem_area=Axi1\ncache_mem_area=Axi0\n";
    EXPECT_EQ(complaint(mode, "Ethos_U65_High_End", "D"), "accepted");
    EXPECT_THAT(complaint("[System_Config.K]\ncore_clock=abc\n", "K", "dedicated-sram"),
                HasSubstr("my.ini:2: [System_Config.K] core_clock: 'abc' is not a number"));
    EXPECT_THAT(complaint("[System_Config.K]\ncore_clock=nan\n", "K", "dedicated-sram"), HasSubstr("'nan' is not"));
    EXPECT_THAT(complaint("[System_Config.L]\naxi0_port=Rom\n", "L", "dedicated-sram"),
                HasSubstr("my.ini:2: [System_Config.L] axi0_port: 'Rom' is not one of Sram, Dram, OnChipFlash"));
    EXPECT_THAT(complaint("[System_Config.M]\naxi1_port=Dram\nDram_clock_scale=7\n", "M", "dedicated-sram"),
                HasSubstr("[System_Config.M] Dram_clock_scale: '7' is not a number from"));
    EXPECT_THAT(complaint("[System_Config.M]\naxi1_port=Dram\nDram_burst_length=-3\n", "M", "dedicated-sram"),
                HasSubstr("[System_Config.M] Dram_burst_length: '-3' is not a whole number"));
    EXPECT_THAT(complaint("[Memory_Mode.J]\nconst_mem_area=Axi2\n", "Ethos_U65_High_End", "J"),
                HasSubstr("my.ini:2: [Memory_Mode.J] const_mem_area: 'Axi2' is not one of Axi0, Axi1"));
    // Flash cannot be written, as Vela says too.
    EXPECT_THAT(complaint("[System_Config.A]\naxi1_port=OffChipFlash\n" + mode, "A", "D"),
                HasSubstr("[Memory_Mode.D] arena_mem_area: the arena is written, but Axi1 is OffChipFlash"));
    EXPECT_THAT(complaint("[Memory_Mode.I]\nconst_mem_area=Axi0\narena_mem_area=Axi1\n", "Ethos_U65_High_End", "I"),
                HasSubstr("constants on Axi0, arena on Axi1"));
    EXPECT_THAT(complaint("[Memory_Mode.A]\ninherit=Memory_Mode.B\n[Memory_Mode.B]\ninherit=Memory_Mode.A\n",
                          "Ethos_U65_High_End", "A"),
                HasSubstr("my.ini:4: [Memory_Mode.B] inherit: [Memory_Mode.A] inherits from itself"));
    EXPECT_THAT(complaint("[Memory_Mode.A]\ninherit=Memory_Mode.Z\n", "Ethos_U65_High_End", "A"),
                HasSubstr("my.ini:2: [Memory_Mode.A] inherit: there is no section [Memory_Mode.Z]"));
    EXPECT_THAT(complaint(mode, "Mine", "D"), HasSubstr("'Mine'"));
    EXPECT_THAT(complaint(mode, "Ethos_U65_High_End", "E"), HasSubstr("no memory mode 'E'"));
    EXPECT_THAT(complaint(mode, "Ethos_U65_High_End", "E"), HasSubstr("in the files: D"));
}

TEST(VelaIni, SyntaxErrorsNameTheLine) {
    Ini ini;
    const auto said = [&](const std::string& text) {
        const auto added = Ini().add(text, "my.ini");
        return added ? std::string("accepted") : added.error().describe();
    };
    EXPECT_THAT(said("a=1\n"), HasSubstr("my.ini:1: 'a=1' stands in no section"));
    EXPECT_THAT(said("[A]\nb\n"), HasSubstr("my.ini:2: 'b' in [A] is no 'key = value'"));
    EXPECT_THAT(said("[A]\n[A]\n"), HasSubstr("my.ini:2: the section [A] stands twice"));
    EXPECT_THAT(said("[A]\nb=1\nB=2\n"), HasSubstr("my.ini:3: the key 'B' stands twice in [A]"));
    EXPECT_THAT(said("[A\n"), HasSubstr("my.ini:1: '[A' is no section"));
    EXPECT_THAT(said("[A]\nb=%(c)s\n"), HasSubstr("[A] b: values that name others"));
    EXPECT_THAT(said(std::string("[A]\nb=\0\n", 8)), HasSubstr("my.ini:2: not a text"));
    EXPECT_EQ(said("\xEF\xBB\xBF# c\r\n; d\r\n[A]\r\nb = 1\r\n  more\r\n"), "accepted");
}

TEST(VelaIni, KeysThatNobodyKnowsAreToldAndNotObeyed) {
    const auto ini = ini_of("[System_Config.S]\ncore_clok=1e9\nSram_ports_used=2\nDram_max_reads=3\n");
    std::vector<std::string> warnings;
    ASSERT_TRUE(make_target({.system = "S", .memory_mode = "shared-sram", .files = {}}, ini, &warnings));
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_EQ(warnings[0], "my.ini:2: [System_Config.S] core_clok: nobody knows this key");
}

}  // namespace
}  // namespace talpa::compiler::vela
