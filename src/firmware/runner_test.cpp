// The runner against a Linux that is this test: memory as the board has it, the functional NPU model, replies
// collected.
#include "firmware/runner.h"

#include <gtest/gtest.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/host/file.h"
#include "base/host/json.h"
#include "base/host/testing.h"
#include "link/crc32.h"
#include "link/memory_map.h"
#include "npu_model/model.h"
#include "pte/host/read_spec.h"
#include "runtime/operators/quantize.h"

namespace talpa::firmware {
namespace {

class Board final : public RunnerPlatform, public npu::Device {
  public:
    std::uint8_t* memory(std::uint32_t address, std::uint32_t size) override {
        if (link::kModelRegion.contains(address, size)) return aligned(model_) + (address - link::kModelRegion.base);
        if (link::kEthosuRegion.contains(address, size)) return aligned(ethosu_) + (address - link::kEthosuRegion.base);
        return nullptr;
    }
    Result<npu::Device*> npu() override {
        if (!has_npu) return fail(ErrorCode::NotFound, "nothing answers at {}", hex(0x4A900000));
        return this;
    }
    std::string_view npu_state() const override { return has_npu ? "ok" : "absent"; }
    std::uint32_t now_ms() const override { return time_ms; }
    std::uint32_t cycles() const override { return time_ms * 1000; }
    std::uint32_t cycles_per_us() const override { return 1; }
    bool send(Peer to, std::string_view text) override {
        if (buffers == 0) return false;
        if (buffers > 0) --buffers;
        last_peer = to;
        replies.emplace_back(text);
        return true;
    }
    bool link_up() const override { return true; }
    /// As the link does it: a message that is not taken wholly comes again, and none before it.
    void service_link() override {
        ++time_ms;
        if (buffers >= 0) buffers += freed_each_time;
        while (!waiting.empty()) {
            auto& [from, text] = waiting.front();
            text.erase(0, receive(from, text));
            if (!text.empty()) break;
            waiting.pop_front();
        }
    }
    void trace(std::string_view line) override { traced += std::string(line) + "\n"; }
    void trace_restart() override { traced.clear(); }

    std::uint32_t config() const override { return npu::kConfigU65_256; }
    std::uint32_t id() const override { return npu::kIdU65; }
    Result<npu::JobStats> run(const npu::Job& job) override {
        if (during_npu) during_npu();
        if (npu_error) return std::unexpected(*npu_error);
        return model.run(job);
    }

    bool has_npu = true;
    int buffers = -1;         ///< free RPMsg buffers; negative: any number
    int freed_each_time = 0;  ///< buffers that Linux gives back between two looks at the link
    std::function<std::size_t(Peer, std::string_view)> receive;
    std::deque<std::pair<Peer, std::string>> waiting;
    std::uint32_t time_ms = 0;
    std::vector<std::string> replies;
    Peer last_peer;
    std::string traced;
    std::function<void()> during_npu;
    std::optional<Error> npu_error;
    npu_model::Model model;

  private:
    static std::uint8_t* aligned(std::vector<std::uint8_t>& bytes) {
        return reinterpret_cast<std::uint8_t*>((reinterpret_cast<std::uintptr_t>(bytes.data()) + 15) &
                                               ~std::uintptr_t{15});
    }
    std::vector<std::uint8_t> model_ = std::vector<std::uint8_t>(link::kModelRegion.size + 16);
    std::vector<std::uint8_t> ethosu_ = std::vector<std::uint8_t>(link::kEthosuRegion.size + 16);
};

constexpr Peer kPeer{0x400, 0x401};

class RunnerTest : public ::testing::Test {
  protected:
    void SetUp() override {
        board.receive = [&](Peer from, std::string_view text) { return runner.received(from, text); };
        runner.start();
    }

    std::vector<std::uint8_t> golden(const std::string& path) {
        return host::read_file(testing_folder() / path).value();
    }
    static std::filesystem::path testing_folder() { return talpa::testing::golden_folder(); }

    void put(std::uint32_t address, const std::vector<std::uint8_t>& bytes) {
        std::memcpy(board.memory(address, static_cast<std::uint32_t>(bytes.size())), bytes.data(), bytes.size());
    }
    void stage(const std::string& folder, const std::string& name) {
        program = golden(folder + "/" + name + "/" + name + ".pte");
        input = golden(folder + "/" + name + "/in0.bin");
        put(link::kProgram.base, program);
        put(link::kInputTensor.base, input);
    }
    void hear(const std::string& message) { ASSERT_EQ(runner.received(kPeer, message), message.size()); }
    std::vector<std::string> say(const std::string& line) {
        board.replies.clear();
        hear(line + "\n");
        for (int i = 0; i < 20 && !runner.idle(); ++i) runner.poll();
        runner.poll();
        return board.replies;
    }
    static bool has(const std::vector<std::string>& replies, const std::string& text) {
        for (const auto& r : replies)
            if (r.find(text) != std::string::npos) return true;
        return false;
    }
    std::vector<std::uint8_t> output(std::size_t bytes) {
        const std::uint8_t* at = board.memory(link::kOutputCopies.base, static_cast<std::uint32_t>(bytes));
        return {at, at + bytes};
    }
    volatile link::ControlBlock& control() {
        return *reinterpret_cast<volatile link::ControlBlock*>(
            board.memory(link::kControlBlock.base, sizeof(link::ControlBlock)));
    }

    Board board;
    Runner runner{board, runtime::operators::kQuantizeOperators, "test-1"};
    std::vector<std::uint8_t> program, input;
};

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

TEST_F(RunnerTest, CommandsAreAnsweredWhileTheNpuRuns) {
    stage("models", "ds_cnn_random");
    bool answered = false;
    board.during_npu = [&] {
        hear("PING\nSTATUS\n");
        runner.service();
        answered = has(board.replies, "PONG seq=0") && has(board.replies, "STATUS state=running");
    };
    EXPECT_EQ(say("RUN").back(), "OK RUN seq=1\n");
    EXPECT_TRUE(answered);
}

TEST_F(RunnerTest, QueueTakesFourAndTheFifthIsBusy) {
    stage("models", "ds_cnn_random");
    board.replies.clear();
    for (int i = 0; i < 5; ++i) hear("@" + std::to_string(i) + " RUN top=1\n");
    for (int i = 0; i < 10; ++i) runner.poll();
    for (int i = 0; i < 4; ++i)
        EXPECT_TRUE(has(board.replies, "@" + std::to_string(i) + " OK RUN seq=" + std::to_string(i + 1))) << i;
    EXPECT_TRUE(has(board.replies, "@4 ERR 3 busy"));
    EXPECT_FALSE(has(board.replies, "@4 OK"));
}

TEST_F(RunnerTest, AbortEndsTheRunAndTimeoutDoesToo) {
    stage("models", "ds_cnn_random");
    const auto wait_like_the_driver = [&](bool abort) {
        if (abort) hear("ABORT\n");
        while (runner.must_stop() == Runner::Stop::No) runner.service();
        board.npu_error = Error(ErrorCode::Timeout, "the NPU did not finish");
    };
    board.during_npu = [&] { wait_like_the_driver(true); };
    auto replies = say("RUN");
    EXPECT_TRUE(has(replies, "OK ABORT"));
    EXPECT_TRUE(has(replies, "ERR 7 aborted"));
    board.npu_error.reset();
    board.during_npu = [&] { wait_like_the_driver(false); };
    EXPECT_TRUE(has(say("RUN timeout=50"), "ERR 6 timeout"));
    board.npu_error.reset();
    board.during_npu = nullptr;
    EXPECT_TRUE(has(say("RUN"), "OK RUN"));
}

TEST_F(RunnerTest, RepliesWaitForBuffersInOrder) {
    stage("models", "ds_cnn_random");
    board.buffers = 0;
    board.replies.clear();
    hear("RUN\n");
    runner.poll();
    EXPECT_TRUE(board.replies.empty());
    board.buffers = -1;
    runner.poll();
    EXPECT_EQ(board.replies.front(), "STATUS loading\n");
    EXPECT_EQ(board.replies.back(), "OK RUN seq=1\n");
}

class FullRing : public RunnerTest {
  protected:
    /// Questions as a writer packs them who fills every message, and what they must be answered with.
    void ask(const std::string& word, int count, std::size_t lines_of_a_reply) {
        std::string all;
        for (int i = 0; i < count; ++i) {
            const std::string tag = "@" + std::to_string(i) + " ";
            all += tag + word + "\n";
            for (std::size_t l = 0; l + 1 < lines_of_a_reply; ++l) expected.push_back(tag + word);
            expected.push_back(tag + (lines_of_a_reply == 1 ? "PONG" : "OK " + word));
        }
        all += "@last PING\n";
        expected.push_back("@last PONG");
        for (std::size_t at = 0; at < all.size(); at += 496) board.waiting.emplace_back(kPeer, all.substr(at, 496));
    }
    /// Every reply once and in order.
    void expect_replies() {
        ASSERT_EQ(board.replies.size(), expected.size());
        for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(board.replies[i].starts_with(expected[i])) << i;
    }
    std::vector<std::string> expected;
};

TEST_F(FullRing, NoReplyIsLostWhateverTheQuestionsThatNobodyReadTheAnswersOf) {
    for (const auto& [word, lines] : {std::pair{"PING", 1u}, std::pair{"STATUS", 2u}, std::pair{"INFO", 3u}}) {
        board.replies.clear();
        expected.clear();
        board.buffers = 0;
        ask(word, 1000, lines);
        for (int i = 0; i < 50; ++i) runner.poll();
        EXPECT_TRUE(board.replies.empty());
        EXPECT_FALSE(board.waiting.empty()) << "what has no room for its answer is not taken";
        EXPECT_FALSE(runner.idle());
        board.freed_each_time = 3;  // not a whole answer of INFO's and ABORT's at a time
        for (int i = 0; i < 5000 && !(runner.idle() && board.waiting.empty()); ++i) runner.poll();
        expect_replies();
        board.freed_each_time = 0;
    }
}

TEST_F(FullRing, ARunAmongThemLosesNothingEither) {
    stage("models", "ds_cnn_random");
    board.buffers = 0;
    board.freed_each_time = 1;
    board.during_npu = [&] {
        ask("STATUS", 200, 2);
        for (int i = 0; i < 30; ++i) runner.service();
    };
    hear("RUN top=3\n");
    for (int i = 0; i < 5000 && !(runner.idle() && board.waiting.empty()); ++i) runner.poll();
    // The run's lines lie among the others, each once and in their order.
    std::vector<std::string> run, others;
    for (const auto& reply : board.replies) (reply.starts_with("@") ? others : run).push_back(reply);
    ASSERT_EQ(run.size(), 8u);
    const char* const starts[] = {"STATUS loading", "STATUS running", "TOP 1", "TOP 2", "TOP 3", "OUT",
                                  "TIME",           "OK RUN seq=1"};
    for (std::size_t i = 0; i < run.size(); ++i) EXPECT_TRUE(run[i].starts_with(starts[i])) << run[i];
    board.replies = others;
    expect_replies();
}

TEST_F(FullRing, ANewLinkOwesNothingToThePeersOfTheLast) {
    stage("models", "ds_cnn_random");
    board.buffers = 0;
    hear("STATUS\nRUN\nhalf a li");
    runner.link_is_new();
    board.buffers = -1;
    board.replies.clear();
    for (int i = 0; i < 5; ++i) runner.poll();
    EXPECT_TRUE(board.replies.empty()) << board.replies.front();
    EXPECT_EQ(say("PING").back(), "PONG seq=0\n") << "the half line is forgotten";

    // In the middle of a run: it ends, and nobody hears of it.
    board.during_npu = [&] {
        runner.link_is_new();
        EXPECT_EQ(runner.must_stop(), Runner::Stop::Aborted);
        board.npu_error = Error(ErrorCode::Timeout, "the NPU did not finish");
        board.replies.clear();
    };
    EXPECT_TRUE(say("RUN").empty());
    board.npu_error.reset();
    board.during_npu = nullptr;
    EXPECT_TRUE(has(say("RUN"), "OK RUN"));
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

TEST_F(RunnerTest, EchoOfItsOwnRepliesIsNotAnswered) {
    stage("models", "ds_cnn_random");
    const auto replies = say("RUN");
    std::string echo;
    for (const auto& r : replies) echo += r;
    EXPECT_TRUE(say(echo.substr(0, echo.size() - 1)).empty());
}

TEST_F(RunnerTest, UnknownWordsAreAnsweredAtMostTenTimesASecond) {
    board.replies.clear();
    for (int i = 0; i < 50; ++i) hear("nonsense\n");
    runner.poll();
    EXPECT_EQ(board.replies.size(), 1u);
    board.time_ms += 200;
    hear("nonsense\n");
    runner.poll();
    EXPECT_EQ(board.replies.size(), 2u);
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
