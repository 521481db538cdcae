// A board with the real firmware for tests: Linux's remoteproc, the tty, memory. Skips where the firmware is not built.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <cstring>

#include "base/host/file.h"
#include "base/host/testing.h"
#include "board/linux/remoteproc.h"
#include "board/linux/rpmsg_tty.h"
#include "board/machine/machine.h"
#include "link/control_block.h"
#include "link/memory_map.h"

namespace talpa::board {

using namespace std::chrono_literals;

class BoardTest : public ::testing::Test {
  protected:
    void SetUp() override { take_firmware("executorch_runner_cm33.elf"); }
    void take_firmware(const char* name) {
        const auto elf = std::filesystem::path(TALPA_SOURCE_DIR) / "build/firmware" / name;
        if (!std::filesystem::exists(elf)) GTEST_SKIP() << "the firmware is not built (./run build)";
        elf_ = host::read_file(elf).value();
    }
    void up(MachineOptions options = {}, TtyFlavour flavour = TtyFlavour::Mainline) {
        machine_ = Machine::create(options, log_).value();
        RemoteprocConfig config;
        config.startup_delay_ms = 0;
        rproc_ = std::make_unique<Remoteproc>(
            config, machine_->memory(), *machine_, machine_->mailbox(),
            [this](const std::string&) { return FirmwareFile{elf_, 0}; }, log_,
            [this, flavour](VirtioRpmsg& bus,
                            const VirtioRpmsg::Channel& channel) -> std::unique_ptr<RpmsgChannelDriver> {
                if (!tty_serves(flavour, channel.name)) return nullptr;
                RpmsgTty::Config tty;
                tty.flavour = flavour;
                return RpmsgTty::create(bus, channel, tty, registry_).value();
            });
        machine_->on_mailbox([remoteproc = rproc_.get()] { remoteproc->mailbox_received(); });
    }
    void TearDown() override {
        if (fd_ >= 0) ::close(fd_);
        rproc_.reset();
        machine_.reset();
    }
    void open_tty() {
        ASSERT_EQ(rproc_->write_state("start"), 0);
        for (int i = 0; i < 3000 && registry_.ttys().empty(); ++i) std::this_thread::sleep_for(1ms);
        ASSERT_FALSE(registry_.ttys().empty()) << rproc_->read_trace(0);
        fd_ = ::open(registry_.ttys()[0].second.c_str(), O_RDWR | O_NOCTTY);
        ASSERT_GE(fd_, 0);
    }
    /// Sends a line, reads until a line begins with OK or ERR; the whole text.
    std::string ask(const std::string& line, int timeout_ms = 60000) {
        say(line);
        return answer(timeout_ms);
    }
    void say(const std::string& line) {
        const std::string sent = line + "\n";
        EXPECT_EQ(::write(fd_, sent.data(), sent.size()), static_cast<ssize_t>(sent.size()));
    }
    std::string answer(int timeout_ms = 60000) {
        std::string text;
        for (;;) {
            pollfd p{fd_, POLLIN, 0};
            if (::poll(&p, 1, timeout_ms) <= 0) return text + "(silence) trace: " + rproc_->read_trace(0);
            char buffer[512];
            const ssize_t n = ::read(fd_, buffer, sizeof buffer);
            if (n <= 0) return text + "(hung up)";
            text.append(buffer, static_cast<std::size_t>(n));
            const auto last = text.rfind('\n', text.size() - 2);
            const auto final = text.substr(last == std::string::npos ? 0 : last + 1);
            if (text.back() == '\n' && (final.starts_with("OK ") || final.starts_with("ERR ") ||
                                        final.starts_with("PONG") || final.starts_with("CRC ")))
                return text;
        }
    }
    void put(std::uint32_t address, const std::vector<std::uint8_t>& bytes) {
        std::memcpy(machine_->memory().at(address, bytes.size()), bytes.data(), bytes.size());
    }

    /// Program and input of a network of tests/golden/models at their default places.
    void stage(const std::string& name) {
        const auto folder = testing::golden_folder() / "models" / name;
        put(link::kProgram.base, host::read_file(folder / (name + ".pte")).value());
        put(link::kInputTensor.base, host::read_file(folder / "in0.bin").value());
        expected_ = host::read_file(folder / "out0.bin").value();
    }
    /// Is the copy of the first output the recorded one?
    bool output_is_right() {
        return std::memcmp(machine_->memory().at(link::kOutputCopies.base, expected_.size()), expected_.data(),
                           expected_.size()) == 0;
    }
    void run_is_right(const char* when) {
        std::memset(machine_->memory().at(link::kOutputCopies.base, expected_.size()), 0x5A, expected_.size());
        const std::string replies = ask("RUN");
        EXPECT_NE(replies.find("OK RUN"), std::string::npos) << when << ": " << replies;
        EXPECT_TRUE(output_is_right()) << when;
    }
    const volatile link::ControlBlock& control() {
        return *reinterpret_cast<const volatile link::ControlBlock*>(
            machine_->memory().at(link::kControlBlock.base, sizeof(link::ControlBlock)));
    }

    KernelLog log_;
    TtyRegistry registry_;
    std::vector<std::uint8_t> expected_;
    std::vector<std::uint8_t> elf_;
    std::unique_ptr<Machine> machine_;
    std::unique_ptr<Remoteproc> rproc_;
    int fd_ = -1;
};

}  // namespace talpa::board
