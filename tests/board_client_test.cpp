// The Linux client of link/host against the real firmware on the virtual hardware: what it stages, what it gets back,
// and what it says when the firmware is stopped, faults, hangs or never started.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/host/testing.h"
#include "link/control_block.h"
#include "link/crc32.h"
#include "link/host/runner_client.h"
#include "machine_tree.h"

namespace talpa::link::host {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

struct Network {
    explicit Network(const std::filesystem::path& folder)
        : program(talpa::host::read_file(folder / (folder.filename().string() + ".pte")).value()),
          input(talpa::host::read_file(folder / "in0.bin").value()),
          output(talpa::host::read_file(folder / "out0.bin").value()),
          inputs{Bytes(input)} {}
    Network(const Network&) = delete;
    [[nodiscard]] RunJob job() const {
        return {.program = program, .program_crc = crc32(program), .inputs = inputs, .timeout = 60s};
    }
    std::vector<std::uint8_t> program, input, output;
    std::array<Bytes, 1> inputs;
};

class BoardClient : public ::testing::Test {
  protected:
    void SetUp() override {
        if (!std::filesystem::exists(talpa::testing::MachineTree::firmware_elf()))
            GTEST_SKIP() << "the firmware is not built (./run build)";
    }
    void up(board::MachineOptions options = {}) {
        tree_ = std::make_unique<talpa::testing::MachineTree>(options);
        access_ = direct_access({.root = tree_->root()});
        client_ = std::make_unique<RunnerClient>(*access_, "imx-rproc");
    }
    Network resnet_{talpa::testing::golden_folder() / "models/resnet8_random"};
    Network ds_cnn_{talpa::testing::golden_folder() / "models/ds_cnn_random"};
    std::unique_ptr<talpa::testing::MachineTree> tree_;
    std::unique_ptr<BoardAccess> access_;
    std::unique_ptr<RunnerClient> client_;
};

TEST_F(BoardClient, RunsBitForBitAndStagesAProgramOnlyWhenItChanged) {
    up();
    ASSERT_EQ(tree_->start(), 0);
    const auto info = client_->info();
    ASSERT_TRUE(info) << info.error().flat().describe();
    EXPECT_EQ(info->protocol, "ETR/1");
    for (int i = 0; i < 3; ++i) {
        const auto answer = client_->run(resnet_.job());
        ASSERT_TRUE(answer) << answer.error().flat().describe();
        ASSERT_EQ(answer->outputs.size(), 1u);
        EXPECT_EQ(answer->outputs[0].bytes, resnet_.output);
        EXPECT_EQ(answer->top.size(), 5u);
        EXPECT_GT(answer->times.npu_cycles, 0u);
    }
    EXPECT_EQ(client_->programs_staged(), 1u);
    ASSERT_TRUE(client_->run(ds_cnn_.job()));
    EXPECT_EQ(client_->programs_staged(), 2u);
    // Somebody writes a program by hand, as the original web page does, without the control block.
    std::memcpy(tree_->memory().at(kProgram.base, 64), "garbage garbage garbage", 23);
    const auto again = client_->run(ds_cnn_.job());
    ASSERT_TRUE(again) << again.error().flat().describe();
    EXPECT_EQ(again->outputs[0].bytes, ds_cnn_.output);
    EXPECT_EQ(client_->programs_staged(), 3u);
}

TEST_F(BoardClient, TwoClientsAtOnceGetTheirOwnAnswers) {
    up();
    ASSERT_EQ(tree_->start(), 0);
    std::atomic<int> wrong{0};
    const auto many = [&](const Network& network) {
        const auto access = direct_access({.root = tree_->root()});
        RunnerClient client(*access, "imx-rproc");
        for (int i = 0; i < 15; ++i) {
            const auto answer = client.run(network.job());
            if (!answer || answer->outputs.size() != 1 || answer->outputs[0].bytes != network.output) ++wrong;
        }
    };
    std::thread first(many, std::cref(resnet_)), second(many, std::cref(ds_cnn_));
    first.join();
    second.join();
    EXPECT_EQ(wrong, 0);
}

TEST_F(BoardClient, OpeningTheTtyTakesNoAnswersFromAProgramThatWaits) {
    up();
    ASSERT_EQ(tree_->start(), 0);
    ASSERT_TRUE(client_->info());
    std::atomic<bool> ending{false};
    std::thread opener([&] {
        while (!ending) {
            EXPECT_TRUE(direct_access({.root = tree_->root()})->open_tty());
            std::this_thread::sleep_for(100us);
        }
    });
    RunJob job = ds_cnn_.job();
    job.timeout = 10s;
    for (int i = 0; i < 10; ++i) {
        const auto answer = client_->run(job);
        EXPECT_TRUE(answer) << answer.error().flat().describe();
    }
    ending = true;
    opener.join();
}

TEST_F(BoardClient, LargeProgramsGoToTheUpperRegion) {
    TALPA_NEEDS_REFERENCE();
    up();
    ASSERT_EQ(tree_->start(), 0);
    const Network lite(reference / "models/efficientnet_lite0");
    const auto answer = client_->run(lite.job());
    ASSERT_TRUE(answer) << answer.error().flat().describe();
    EXPECT_EQ(answer->outputs[0].bytes, lite.output);
    EXPECT_EQ(answer->top.at(0).class_index, 285u) << "Egyptian cat";
}

TEST_F(BoardClient, TheTtyIsFoundAgainAfterARestart) {
    up();
    for (int i = 0; i < 3; ++i) {
        const auto stopped = client_->run(ds_cnn_.job());
        ASSERT_FALSE(stopped);
        EXPECT_EQ(stopped.error().fault, BoardFault::FirmwareNotRunning) << stopped.error().flat().describe();
        ASSERT_EQ(tree_->start(), 0);
        const auto answer = client_->run(ds_cnn_.job());
        ASSERT_TRUE(answer) << answer.error().flat().describe();
        EXPECT_EQ(answer->outputs[0].bytes, ds_cnn_.output);
        ASSERT_EQ(tree_->stop(), 0);
    }
}

TEST_F(BoardClient, AStopInTheMiddleOfARunEndsIt) {
    board::MachineOptions options;
    options.npu_hangs = true;
    up(options);
    ASSERT_EQ(tree_->start(), 0);
    std::thread stopper;
    RunCallbacks callbacks;
    callbacks.phase = [&](RunPhase phase) {
        if (phase == RunPhase::Running)
            stopper = std::thread([&] {
                std::this_thread::sleep_for(300ms);
                (void)tree_->stop();
            });
    };
    const auto start = std::chrono::steady_clock::now();
    const auto stopped = client_->run(ds_cnn_.job(), callbacks);
    stopper.join();
    ASSERT_FALSE(stopped);
    EXPECT_EQ(stopped.error().fault, BoardFault::FirmwareStopped) << stopped.error().flat().describe();
    EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
}

TEST_F(BoardClient, AHangingNpuIsTheRunnersTimeoutAndACancelEndsIt) {
    board::MachineOptions options;
    options.npu_hangs = true;
    up(options);
    ASSERT_EQ(tree_->start(), 0);
    RunJob job = ds_cnn_.job();
    job.timeout = 4s;  // the M33's clock may lag behind on a busy machine
    const auto late = client_->run(job);
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().fault, BoardFault::Runner) << late.error().flat().describe();
    EXPECT_EQ(late.error().runner, RunnerError::Timeout);
    EXPECT_THAT(late.error().known, ::testing::Contains(HasSubstr("remoteproc0 (imx-rproc): running")));

    job.timeout = 60s;
    RunCallbacks callbacks;
    const auto start = std::chrono::steady_clock::now();
    callbacks.cancelled = [&] { return std::chrono::steady_clock::now() - start > 200ms; };
    const auto cancelled = client_->run(job, callbacks);
    ASSERT_FALSE(cancelled);
    EXPECT_EQ(cancelled.error().fault, BoardFault::Cancelled) << cancelled.error().flat().describe();
    EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
    EXPECT_TRUE(client_->info()) << "and the firmware still answers";
}

TEST_F(BoardClient, AFaultOfTheM33IsToldAtOnceWithItsRecord) {
    board::MachineOptions options;
    options.npu_powered = false;
    up(options);
    ASSERT_EQ(tree_->start(), 0);
    const auto start = std::chrono::steady_clock::now();
    const auto fault = client_->run(ds_cnn_.job());
    ASSERT_FALSE(fault);
    EXPECT_EQ(fault.error().fault, BoardFault::FirmwareFault) << fault.error().flat().describe();
    const auto asked = client_->info();
    ASSERT_FALSE(asked);
    EXPECT_EQ(asked.error().fault, BoardFault::FirmwareFault) << "a question gets the same reason";
    EXPECT_EQ(asked.error().error.hint, fault.error().error.hint);
    EXPECT_LT(std::chrono::steady_clock::now() - start, 10s) << "long before the timeout of 60 s";
    EXPECT_THAT(fault.error().known, ::testing::Contains(HasSubstr("bfar 0x4A900")));
}

TEST_F(BoardClient, WhatTheRunnerRefusesIsToldWithItsCode) {
    up();
    ASSERT_EQ(tree_->start(), 0);
    RunJob job = resnet_.job();
    const std::array<Bytes, 1> small{Bytes(resnet_.input).first(100)};
    job.inputs = small;
    const auto refused = client_->run(job);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().runner, RunnerError::InputMismatch) << refused.error().flat().describe();
    job = resnet_.job();
    job.program_crc ^= 1;
    EXPECT_EQ(client_->run(job).error().runner, RunnerError::CrcMismatch);
    const auto good = client_->run(resnet_.job());
    ASSERT_TRUE(good) << "and the next run works";
    EXPECT_EQ(good->outputs[0].bytes, resnet_.output);
}

}  // namespace
}  // namespace talpa::link::host
