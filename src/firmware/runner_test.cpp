// Runs of the runner: what is staged, what is asked for, what lies there afterwards, which failures are which codes.
#include <fmt/ranges.h>

#include <algorithm>

#include "base/host/json.h"
#include "firmware/runner_for_test.h"
#include "link/crc32.h"
#include "pte/host/read_spec.h"

namespace talpa::firmware {
namespace {

TEST_F(RunnerTest, BareRunOfAStagedNetworkGivesTheRecordedOutput) {
    stage("models", "resnet8_random");
    const auto replies = say("RUN");
    ASSERT_FALSE(replies.empty());
    EXPECT_EQ(replies.front(), "STATUS loading\n");
    EXPECT_EQ(replies.back(), "OK RUN seq=1\n") << replies.back();
    EXPECT_TRUE(has(replies, "TOP 1 class="));
    EXPECT_TRUE(has(replies, "TOP 5 class="));
    EXPECT_FALSE(has(replies, "TOP 6"));
    EXPECT_TRUE(has(replies, "TIME "));
    const auto expected = golden("models/resnet8_random/out0.bin");
    EXPECT_EQ(output(expected.size()), expected);
    EXPECT_EQ(control().output_count, 1u);
    EXPECT_EQ(control().outputs[0].address, link::kOutputCopies.base);
    EXPECT_EQ(control().state, static_cast<std::uint32_t>(link::RunnerState::Done));
    EXPECT_NE(board.traced.find("1 inferences finished"), std::string::npos);
}

TEST_F(RunnerTest, SeveralOutputsFollowEachOther) {
    stage("ops", "two_outputs");
    const auto replies = say("RUN top=0");
    EXPECT_EQ(replies.back(), "OK RUN seq=1\n");
    EXPECT_EQ(control().output_count, 2u);
    for (std::uint32_t i = 0; i < 2; ++i) {
        const auto expected = golden("ops/two_outputs/out" + std::to_string(i) + ".bin");
        const std::uint8_t* at = board.memory(control().outputs[i].address, control().outputs[i].length);
        EXPECT_EQ(std::vector<std::uint8_t>(at, at + control().outputs[i].length), expected) << i;
    }
}

TEST_F(RunnerTest, ProgramAndInputElsewhereByArguments) {
    stage("models", "ds_cnn_random");
    std::memset(board.memory(link::kProgram.base, 64), 0, 64);
    put(link::kBigPrograms.base, program);
    put(link::kBigPrograms.base + 0x100000, input);
    const auto run = "RUN pte=0xAC000000," + std::to_string(program.size()) + " in=0xAC100000," +
                     std::to_string(input.size()) + " crc=" + std::to_string(link::crc32(program)) + "," +
                     std::to_string(link::crc32(input));
    EXPECT_EQ(say(run).back(), "OK RUN seq=1\n");
    const auto expected = golden("models/ds_cnn_random/out0.bin");
    EXPECT_EQ(output(expected.size()), expected);
}

TEST_F(RunnerTest, ControlBlockSpeaksOncePerRequestSequence) {
    stage("models", "ds_cnn_random");
    const std::uint32_t at = 0x200000;
    put(link::kModelRegion.base + at, program);
    std::memset(board.memory(link::kProgram.base, 64), 0, 64);
    control().program.offset = at;
    control().program.length = static_cast<std::uint32_t>(program.size());
    control().program.crc32 = link::crc32(program);
    control().request_sequence = 7;
    EXPECT_EQ(say("RUN").back(), "OK RUN seq=1\n");
    EXPECT_TRUE(has(say("RUN"), "ERR 4")) << "consumed: the second RUN finds nothing at the default place";
    control().program.crc32 = link::crc32(program) ^ 1;
    control().request_sequence = 8;
    EXPECT_TRUE(has(say("RUN"), "ERR 5 crc mismatch"));
}

TEST_F(RunnerTest, EveryBitOfTheProgramMattersWhereACrcIsGiven) {
    stage("models", "ds_cnn_random");
    const std::string run =
        "RUN pte=0," + std::to_string(program.size()) + " crc=" + std::to_string(link::crc32(program));
    board.memory(link::kProgram.base, 1000)[999] ^= 0x10;
    EXPECT_TRUE(has(say(run), "ERR 5"));
}

TEST_F(RunnerTest, FailuresAreOneLineWithAStableCodeAndTheNextRunWorks) {
    stage("models", "ds_cnn_random");
    const auto good = [&] { EXPECT_TRUE(has(say("RUN"), "OK RUN")); };
    good();

    std::memset(board.memory(link::kProgram.base, 64), 0, 64);
    EXPECT_TRUE(has(say("RUN"), "ERR 4 no model"));
    EXPECT_NE(board.traced.find("Program identifier '' != expected 'ET12'"), std::string::npos);
    put(link::kProgram.base, program);
    good();

    EXPECT_TRUE(has(say("RUN in=0x36D000,16"), "ERR 14 input shape mismatch"));
    EXPECT_TRUE(has(say("RUN pte=0x36B000,0x2000"), "ERR 8 out of range address")) << "crosses the control block";
    EXPECT_TRUE(has(say("RUN pte=0x20000000,64"), "ERR 8"));
    EXPECT_TRUE(has(say("RUN in=1"), "ERR 2"));
    EXPECT_TRUE(has(say("RUN out=0xAC000000"), "ERR 8"));
    good();

    auto broken = program;
    broken.resize(broken.size() / 2);
    std::memset(board.memory(link::kProgram.base, static_cast<std::uint32_t>(program.size())), 0xFF, program.size());
    put(link::kProgram.base, broken);
    EXPECT_TRUE(has(say("RUN pte=0," + std::to_string(broken.size())), "ERR 15 runtime error: et=0x00000023"));
    put(link::kProgram.base, program);
    good();

    board.npu_error = Error(ErrorCode::NpuFault, "bus_status_error 0x1");
    EXPECT_TRUE(has(say("RUN"), "ERR 12 NPU bus error: bus_status_error 0x1"));
    board.npu_error.reset();
    good();

    board.has_npu = false;
    EXPECT_TRUE(has(say("RUN"), "ERR 11 NPU absent"));
    board.has_npu = true;
    good();

    stage("ops", "argmax_cpu");
    EXPECT_TRUE(has(say("RUN"), "ERR 9 unsupported operator"));
    // What is not found is not always the NPU.
    put(link::kProgram.base, golden("pte_variants/lin_ext.pte"));
    const auto without_data = say("RUN");
    EXPECT_TRUE(has(without_data, "ERR 15 runtime error")) << without_data.back();
    EXPECT_TRUE(has(without_data, "lies in a data file (.ptd)")) << without_data.back();
    const auto u55 = golden("pte_variants/two_u55.pte");
    put(link::kProgram.base, u55);
    EXPECT_TRUE(has(say("RUN"), "ERR 13"));
}

TEST_F(RunnerTest, OutAndCrcAndInfo) {
    stage("models", "ds_cnn_random");
    EXPECT_TRUE(has(say("OUT"), "ERR 2"));
    say("RUN");
    const auto replies = say("OUT i=0 from=0 count=4 fmt=hex");
    std::uint32_t first = 0;
    std::memcpy(&first, board.memory(link::kOutputCopies.base, 4), 4);
    EXPECT_TRUE(has(replies, fmt::format("OUT i=0 from=0 v=0x{:08X},", first)));
    EXPECT_EQ(replies.back(), "OK OUT\n");
    EXPECT_TRUE(has(say("CRC 0 " + std::to_string(program.size())), fmt::format("CRC 0x{:08X}", link::crc32(program))));
    const auto info = say("INFO");
    EXPECT_TRUE(
        has(info,
            "INFO proto=ETR/1 fw=test-1 model=0xC0000000,0x400000 npu=0xA8000000,0x8000000 big=0xAC000000,0x4000000"));
    EXPECT_EQ(info.back(), "OK INFO\n");
    EXPECT_TRUE(has(say("LOAD"), "OK LOAD planned="));
}

TEST_F(RunnerTest, GarbageInTheControlBlockIsNoRequest) {
    std::memset(board.memory(link::kControlBlock.base, 0x1000), 0xA5, 0x1000);
    runner.start();
    stage("models", "ds_cnn_random");
    EXPECT_TRUE(has(say("RUN"), "OK RUN"));
    EXPECT_EQ(control().magic, link::kControlMagic);
}

// Linux may write at any time: what the CRC was right of is what runs, not what lies there when the NPU starts.
TEST_F(RunnerTest, WhatACrcCoversIsCopiedBeforeItIsUsed) {
    stage("models", "ds_cnn_random");
    const auto expected = golden("models/ds_cnn_random/out0.bin");
    board.during_npu = [&] {
        std::memset(board.memory(link::kProgram.base, static_cast<std::uint32_t>(program.size())), 0xEE,
                    program.size());
        std::memset(board.memory(link::kInputTensor.base, 64), 0xEE, 64);
    };
    const auto run = fmt::format("RUN pte=0,{} in=0x36D000,{} crc={},{}", program.size(), input.size(),
                                 link::crc32(program), link::crc32(input));
    EXPECT_EQ(say(run).back(), "OK RUN seq=1\n");
    EXPECT_EQ(output(expected.size()), expected);
    board.during_npu = nullptr;
    EXPECT_TRUE(has(say(run), "ERR 4 no model"));
    put(link::kProgram.base, program);
    EXPECT_TRUE(has(say(run), "ERR 5 crc mismatch: input has 0x"));
}

TEST_F(RunnerTest, OverlappingRangesAreRefused) {
    stage("models", "ds_cnn_random");
    const auto size = std::to_string(program.size()), bytes = std::to_string(input.size());
    EXPECT_TRUE(has(say("RUN pte=0," + size + " in=" + std::to_string(program.size() - 16) + "," + bytes), "ERR 8"));
    EXPECT_TRUE(has(say("RUN pte=0," + size + " in=0," + bytes), "ERR 8"));
    EXPECT_TRUE(has(say("RUN in=0," + bytes), "ERR 8")) << "the default program begins there";
    EXPECT_TRUE(has(say("RUN in=0x36C800," + bytes), "ERR 8")) << "the control block";
    EXPECT_TRUE(has(say("RUN in=0xA8000000," + bytes), "ERR 8")) << "the NPU's scratch";
    EXPECT_TRUE(has(say("RUN pte=0xA9000000," + size), "ERR 8")) << "the planned buffers";
    // Behind a small program there is room for an input; a program of unknown length ends where it begins.
    const std::uint32_t behind = static_cast<std::uint32_t>((program.size() + 15) / 16 * 16);
    put(link::kProgram.base + behind, input);
    EXPECT_EQ(say(fmt::format("RUN in={},{}", behind, input.size())).back(), "OK RUN seq=1\n");
    EXPECT_EQ(output(12 * 4), golden("models/ds_cnn_random/out0.bin"));
    EXPECT_TRUE(has(say(fmt::format("RUN in={},{}", behind / 2 / 16 * 16, input.size())), "ERR 15"));
}

TEST_F(RunnerTest, SeveralInputsFromTheCommandAndFromTheDefaultPlace) {
    stage("ops", "add_same");
    const auto second = golden("ops/add_same/in1.bin");
    const std::uint32_t next = link::kInputTensor.base + static_cast<std::uint32_t>((input.size() + 15) / 16 * 16);
    put(next, second);
    const auto expected = golden("ops/add_same/out0.bin");
    EXPECT_EQ(say("RUN").back(), "OK RUN seq=1\n") << board.replies.back();
    EXPECT_EQ(output(expected.size()), expected);
    std::memset(board.memory(next, 16), 0, 16);
    put(link::kBigPrograms.base, second);
    const auto run = fmt::format("RUN pte=0,{} in=0x36D000,{},0xAC000000,{} crc={},{},{}", program.size(), input.size(),
                                 second.size(), link::crc32(program), link::crc32(input), link::crc32(second));
    EXPECT_EQ(say(run).back(), "OK RUN seq=2\n") << board.replies.back();
    EXPECT_EQ(output(expected.size()), expected);
    EXPECT_TRUE(
        has(say(fmt::format("RUN in=0x36D000,{}", input.size())), "ERR 14 input shape mismatch: 1 inputs staged"));
}

TEST_F(RunnerTest, Int8InputsAndOutputsStayInt8) {
    stage("ops", "int8_io_conv");
    const auto expected = golden("ops/int8_io_conv/out0.bin");
    const auto replies = say("RUN");
    EXPECT_EQ(replies.back(), "OK RUN seq=1\n");
    EXPECT_TRUE(has(replies, " dtype=int8 bytes=" + std::to_string(expected.size())));
    EXPECT_EQ(output(expected.size()), expected);
    EXPECT_TRUE(has(say("OUT i=0 from=0 count=1"), fmt::format(" v={}\n", static_cast<std::int8_t>(expected[0]))));
}

// pte-format, section 5.5: the exporter puts the method's name in front where a program has several.
TEST_F(RunnerTest, ScaleOfAnInt8OutputIsFoundUnderEitherOfItsNames) {
    const auto expected = golden("ops/int8_io_conv/out0.bin");
    const int best =
        *std::ranges::max_element(expected, {}, [](std::uint8_t v) { return static_cast<std::int8_t>(v); });
    for (const std::string prefix : {"", "forward_"}) {
        stage("ops", "int8_io_conv");
        const auto file = pte::Program::open(program);
        ASSERT_TRUE(file);
        auto spec = pte::host::read_spec(*file);
        ASSERT_TRUE(spec);
        std::erase_if(spec->methods, [](const auto& m) { return m.name.find("output0_") != std::string::npos; });
        spec->methods.push_back(pte::host::constant_method_spec(prefix + "output0_scale", 0.5));
        spec->methods.push_back(pte::host::constant_method_spec(prefix + "output0_zp", std::int64_t{3}));
        put(link::kProgram.base, pte::host::write_program(*spec));
        const auto replies = say("RUN");
        EXPECT_TRUE(has(replies, fmt::format(" logit={:.6f}", (static_cast<std::int8_t>(best) - 3) * 0.5)))
            << fmt::format("{}", fmt::join(replies, ""));
    }
}

TEST_F(RunnerTest, WordsThatUsersOfTheOriginalLookFor) {
    stage("models", "ds_cnn_random");
    say("RUN");
    for (const char* words :
         {"NPU config match", "NPU arch match", "cmd_end_reached 0x1", "bus_status_error 0x0",
          "Output[0]: dtype=6, numel=12, nbytes=48", "(float raw)", "1 inferences finished", "Model run: 1"})
        EXPECT_NE(board.traced.find(words), std::string::npos) << words;
}

TEST_F(RunnerTest, TimesAreGivenPhaseByPhase) {
    stage("models", "ds_cnn_random");
    board.during_npu = [&] { board.time_ms += 40; };
    const auto replies = say("RUN");
    for (const char* phase : {"crc_us=", "load_us=", "input_us=", "quantize_us=", "dequantize_us=", "run_us=",
                              "npu_cycles=", "cpu_cycles="})
        EXPECT_TRUE(has(replies, phase)) << phase;
    std::string line;
    for (const auto& r : replies)
        if (r.starts_with("TIME ")) line = r;
    const auto value = [&](const std::string& key) {
        return std::stoul(line.substr(line.find(" " + key) + key.size() + 1));
    };
    EXPECT_GE(value("npu_us="), 40000u);
    EXPECT_LT(value("quantize_us="), 40000u);
    EXPECT_LT(value("dequantize_us="), 40000u);
    EXPECT_GE(value("run_us="), value("npu_us="));
    EXPECT_GT(value("npu_cycles="), 0u);
}

TEST_F(RunnerTest, ABareRunComputesNoCrcAndReadsTheProgramAnew) {
    stage("models", "ds_cnn_random");
    EXPECT_EQ(say("RUN").back(), "OK RUN seq=1\n");
    stage("models", "resnet8_random");
    EXPECT_EQ(say("RUN").back(), "OK RUN seq=2\n");
    const auto expected = golden("models/resnet8_random/out0.bin");
    EXPECT_EQ(output(expected.size()), expected);
}

}  // namespace
}  // namespace talpa::firmware
