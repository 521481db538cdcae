// The runner against a Linux that is a test: memory as the board has it, the functional NPU model, replies collected.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/host/file.h"
#include "base/host/testing.h"
#include "firmware/runner.h"
#include "link/memory_map.h"
#include "npu_model/model.h"
#include "runtime/operators/quantize.h"

namespace talpa::firmware {

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

inline constexpr Peer kPeer{0x400, 0x401};

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

}  // namespace talpa::firmware
