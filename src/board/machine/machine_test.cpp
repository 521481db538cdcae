// The real firmware ELF on the simulated M33: booted by Linux's remoteproc, spoken to through the tty, a golden network
// run.
#include "board/machine/machine.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/host/file.h"
#include "base/host/testing.h"
#include "board/linux/remoteproc.h"
#include "board/linux/rpmsg_tty.h"
#include "link/control_block.h"
#include "link/memory_map.h"

namespace talpa::board {
namespace {

using namespace std::chrono_literals;

class BoardTest : public ::testing::Test {
  protected:
    void SetUp() override {
        const auto elf = std::filesystem::path(TALPA_SOURCE_DIR) / "build/firmware/executorch_runner_cm33.elf";
        if (!std::filesystem::exists(elf)) GTEST_SKIP() << "the firmware is not built (./run build)";
        elf_ = host::read_file(elf).value();
    }
    void up(MachineOptions options = {}) {
        machine_ = Machine::create(options, log_).value();
        RemoteprocConfig config;
        config.startup_delay_ms = 0;
        rproc_ = std::make_unique<Remoteproc>(
            config, machine_->memory(), *machine_, machine_->mailbox(),
            [this](const std::string&) { return FirmwareFile{elf_, 0}; }, log_,
            [this](VirtioRpmsg& bus, const VirtioRpmsg::Channel& channel) -> std::unique_ptr<RpmsgChannelDriver> {
                if (!tty_serves(TtyFlavour::Mainline, channel.name)) return nullptr;
                return RpmsgTty::create(bus, channel, {}, registry_).value();
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
        const std::string sent = line + "\n";
        EXPECT_EQ(::write(fd_, sent.data(), sent.size()), static_cast<ssize_t>(sent.size()));
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

    KernelLog log_;
    TtyRegistry registry_;
    std::vector<std::uint8_t> elf_;
    std::unique_ptr<Machine> machine_;
    std::unique_ptr<Remoteproc> rproc_;
    int fd_ = -1;
};

TEST_F(BoardTest, FirmwareBootsAndAnswers) {
    up();
    open_tty();
    EXPECT_EQ(ask("PING"), "PONG seq=0\n");
    EXPECT_NE(ask("INFO").find("proto=ETR/1"), std::string::npos);
    EXPECT_NE(rproc_->read_trace(0).find("talpa runner"), std::string::npos);
}

TEST_F(BoardTest, GoldenNetworkRunsBitForBit) {
    up();
    const auto folder = testing::golden_folder() / "models/resnet8_random";
    put(link::kProgram.base, host::read_file(folder / "resnet8_random.pte").value());
    put(link::kInputTensor.base, host::read_file(folder / "in0.bin").value());
    open_tty();
    const std::string replies = ask("RUN");
    EXPECT_NE(replies.find("OK RUN seq=1"), std::string::npos) << replies;
    const auto expected = host::read_file(folder / "out0.bin").value();
    const std::uint8_t* const at = machine_->memory().at(link::kOutputCopies.base, expected.size());
    EXPECT_EQ(std::vector<std::uint8_t>(at, at + expected.size()), expected);
}

// From the photo's tensor to the classes, equal to the recorded output; EfficientNet-Lite0 does not fit the model
// region.
TEST_F(BoardTest, ImageNetClassifiersRunBitForBit) {
    TALPA_NEEDS_REFERENCE();
    up();
    open_tty();
    for (const auto& [name, program_at] :
         {std::pair{"mobilenet_v2", link::kProgram.base}, std::pair{"efficientnet_lite0", link::kBigPrograms.base}}) {
        const auto folder = reference / "models" / name;
        const auto program = host::read_file(folder / (std::string(name) + ".pte")).value();
        put(program_at, program);
        put(link::kInputTensor.base, host::read_file(folder / "in0.bin").value());
        const std::string replies = ask(fmt::format("RUN pte=0x{:X},{}", program_at, program.size()));
        EXPECT_NE(replies.find("OK RUN"), std::string::npos) << replies;
        EXPECT_NE(replies.find("TOP 1 class=285"), std::string::npos) << replies;
        const auto expected = host::read_file(folder / "out0.bin").value();
        const std::uint8_t* const at = machine_->memory().at(link::kOutputCopies.base, expected.size());
        EXPECT_EQ(std::vector<std::uint8_t>(at, at + expected.size()), expected) << name;
        RecordProperty(name, replies);
        std::fputs(replies.c_str(), stdout);
    }
}

TEST_F(BoardTest, UnpoweredNpuFaultsTheCoreAndLinuxSeesItInTheControlBlock) {
    MachineOptions options;
    options.npu_powered = false;
    up(options);
    const auto folder = testing::golden_folder() / "models/ds_cnn_random";
    put(link::kProgram.base, host::read_file(folder / "ds_cnn_random.pte").value());
    put(link::kInputTensor.base, host::read_file(folder / "in0.bin").value());
    open_tty();
    EXPECT_NE(ask("RUN", 1000).find("(silence)"), std::string::npos);
    const auto* const control = reinterpret_cast<const link::ControlBlock*>(
        machine_->memory().at(link::kControlBlock.base, sizeof(link::ControlBlock)));
    EXPECT_EQ(control->state, static_cast<std::uint32_t>(link::RunnerState::Fault));
    EXPECT_EQ(control->fault.bfar & 0xFFFFF000, link::kNpuRegisters.base);
    EXPECT_NE(rproc_->read_trace(0).find("BusFault at pc"), std::string::npos);
    EXPECT_EQ(rproc_->read_state(), "running\n") << "as on i.MX 93: Linux sees nothing of it";
}

TEST_F(BoardTest, NpuThatNeverFinishesIsATimeoutAndTheNextRunWorks) {
    MachineOptions options;
    options.npu_hangs = true;
    up(options);
    const auto folder = testing::golden_folder() / "models/ds_cnn_random";
    put(link::kProgram.base, host::read_file(folder / "ds_cnn_random.pte").value());
    put(link::kInputTensor.base, host::read_file(folder / "in0.bin").value());
    open_tty();
    EXPECT_NE(ask("RUN timeout=200").find("ERR 6"), std::string::npos);
    EXPECT_EQ(ask("PING"), "PONG seq=0\n");
}

TEST_F(BoardTest, RestartsAnnounceTheChannelEachTime) {
    up();
    for (int i = 0; i < 5; ++i) {
        open_tty();
        EXPECT_EQ(ask("PING"), "PONG seq=0\n") << i;
        ASSERT_EQ(rproc_->write_state("stop"), 0);
        ::close(fd_);
        fd_ = -1;
        EXPECT_TRUE(registry_.ttys().empty());
    }
}

}  // namespace
}  // namespace talpa::board
