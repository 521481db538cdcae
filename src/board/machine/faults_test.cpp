// What goes wrong on a board, injected: what the user sees, and that the next run works.
#include <algorithm>
#include <atomic>
#include <map>
#include <random>
#include <thread>

#include "board/machine/board_for_test.h"
#include "link/crc32.h"

namespace talpa::board {
namespace {

class FaultTest : public BoardTest {};

TEST_F(FaultTest, OneWrongBitOfTheProgramIsAnErrorWhereACrcIsGivenAndNeverTheEnd) {
    up();
    stage("ds_cnn_random");
    open_tty();
    const auto program = host::read_file(testing::golden_folder() / "models/ds_cnn_random/ds_cnn_random.pte").value();
    const std::string checked = fmt::format("RUN pte=0,{} crc={}", program.size(), link::crc32(program));
    std::mt19937 random(5);
    std::uint8_t* const at = machine_->memory().at(link::kProgram.base, program.size());
    int refused = 0;
    for (int i = 0; i < 60; ++i) {
        // Half of them in the tables in front, where a bit is an offset, a size or a type.
        const std::size_t byte = i % 2 == 0 ? 8 + random() % 1500 : 8 + random() % (program.size() - 8);
        const auto bit = static_cast<std::uint8_t>(1u << random() % 8);
        at[byte] ^= bit;
        EXPECT_NE(ask(checked).find("ERR 5 crc mismatch: program has"), std::string::npos) << byte;
        const std::string bare = ask("RUN timeout=3000");
        EXPECT_TRUE(bare.find("\nERR ") != std::string::npos || bare.find("OK RUN") != std::string::npos)
            << "byte " << byte << " bit " << int{bit} << ": " << bare;
        refused += bare.find("\nERR ") != std::string::npos;
        at[byte] ^= bit;
        if (HasFailure()) break;
    }
    EXPECT_GT(refused, 15) << "many of them are seen without a CRC too";
    run_is_right("after sixty broken programs");
}

TEST_F(FaultTest, MissingOrNonsenseControlBlockDoesNotMatterToABareRun) {
    up();
    stage("ds_cnn_random");
    open_tty();
    std::uint8_t* const block = machine_->memory().at(link::kControlBlock.base, link::kControlBlock.size);
    std::memset(block, 0, link::kControlBlock.size);
    run_is_right("zeroed");
    std::mt19937 random(9);
    for (std::size_t i = 0; i < link::kControlBlock.size; ++i) block[i] = static_cast<std::uint8_t>(random());
    run_is_right("nonsense");
}

TEST_F(FaultTest, TensorThatIsTooSmallIsNamedWithBothSizes) {
    up();
    stage("ds_cnn_random");
    open_tty();
    EXPECT_NE(
        ask("RUN in=0x36D000,1000").find("ERR 14 input shape mismatch: input 0 has 1000 bytes, the program wants 1960"),
        std::string::npos);
    run_is_right("afterwards");
}

TEST_F(FaultTest, ZeroedMemoryIsNoModel) {
    up();
    open_tty();
    std::memset(machine_->memory().at(link::kModelRegion.base, link::kModelRegion.size), 0, link::kModelRegion.size);
    EXPECT_NE(ask("RUN").find("ERR 4 no model"), std::string::npos);
    EXPECT_NE(rproc_->read_trace(0).find("Program identifier '' != expected 'ET12'"), std::string::npos);
    stage("ds_cnn_random");
    run_is_right("with a program");
}

TEST_F(FaultTest, NpuThatNeverFinishesIsATimeoutAndTheNextRunWorks) {
    up();
    stage("ds_cnn_random");
    open_tty();
    machine_->set_npu_hangs(true);
    EXPECT_NE(ask("RUN timeout=200")
                  .find("ERR 6 timeout: the NPU was stopped at command stream offset 0 (STATUS 0x1): "
                        "the time of the run is over"),
              std::string::npos)
        << rproc_->read_trace(0);
    say("RUN");
    std::string replies;
    while (replies.find("STATUS running") == std::string::npos) {
        char buffer[512];
        const ssize_t n = ::read(fd_, buffer, sizeof buffer);
        ASSERT_GT(n, 0);
        replies.append(buffer, static_cast<std::size_t>(n));
    }
    say("@x STATUS");
    say("ABORT");
    while (replies.find("ERR 7") == std::string::npos && replies.find("silence") == std::string::npos)
        replies += answer(5000);
    EXPECT_NE(replies.find("@x STATUS state=running"), std::string::npos) << replies;
    EXPECT_NE(replies.find("OK ABORT"), std::string::npos);
    EXPECT_NE(replies.find("ERR 7 aborted: the NPU was stopped at command stream offset"), std::string::npos)
        << replies;
    machine_->set_npu_hangs(false);
    run_is_right("when the NPU works again");
}

TEST_F(FaultTest, FirewallThatKeepsTheNpuOutOfMemoryIsABusError) {
    MachineOptions options;
    options.npu_denied = true;
    up(options);
    stage("ds_cnn_random");
    open_tty();
    const std::string replies = ask("RUN");
    EXPECT_NE(replies.find("ERR 12 NPU bus error: bus_status_error: the command read on AXI1 was refused"),
              std::string::npos)
        << replies;
    EXPECT_NE(rproc_->read_trace(0).find("bus_status_error"), std::string::npos);
    EXPECT_EQ(ask("PING"), "PONG seq=0\n");
}

TEST_F(FaultTest, UnpoweredNpuFaultsTheCoreAndLinuxSeesItInTheControlBlock) {
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

TEST_F(FaultTest, HardFaultOfTheCoreIsInTheTraceAndInTheControlBlockAndARestartHelps) {
    up();
    stage("ds_cnn_random");
    open_tty();
    run_is_right("before");
    machine_->debug_halt();
    cpu::Registers registers = machine_->debug_core().registers();
    registers.primask = 1;         // no configurable fault may be taken: it becomes a HardFault
    registers.r[15] = 0x60000000;  // where nothing is
    registers.xpsr &= ~0x0600FC00u;
    machine_->debug_core().set_registers(registers);
    machine_->debug_detach();
    for (int i = 0; i < 2000 && control().state != static_cast<std::uint32_t>(link::RunnerState::Fault); ++i)
        std::this_thread::sleep_for(1ms);
    EXPECT_EQ(control().fault.kind, 3u);
    EXPECT_EQ(control().fault.pc, 0x60000000u);
    EXPECT_EQ(control().fault.hfsr, 1u << 30) << "FORCED";
    EXPECT_NE(control().fault.cfsr & 0x100, 0u) << "IBUSERR";
    EXPECT_NE(rproc_->read_trace(0).find("HardFault at pc 0x60000000"), std::string::npos) << rproc_->read_trace(0);
    EXPECT_EQ(rproc_->read_state(), "running\n");
    ASSERT_EQ(rproc_->write_state("stop"), 0);
    ::close(fd_);
    fd_ = -1;
    open_tty();
    EXPECT_EQ(control().fault.kind, 0u);
    run_is_right("after a restart");
}

// Linux is too busy to look at its rings: all 256 buffers are used up and the firmware's outbox fills.
TEST_F(FaultTest, ThreeWritersAtOnceEachGetTheirAnswerOnce) {
    up();
    stage("ds_cnn_random");
    open_tty();
    constexpr int kRounds = 4;
    for (int round = 0; round < kRounds; ++round) {
        std::vector<std::thread> writers;
        for (char who : {'a', 'b', 'c'})
            writers.emplace_back([&, who] {
                const int fd = ::open(registry_.ttys()[0].second.c_str(), O_RDWR | O_NOCTTY);
                const std::string line = fmt::format("@{}{} RUN top=1\n", who, round);
                EXPECT_EQ(::write(fd, line.data(), line.size()), static_cast<ssize_t>(line.size()));
                ::close(fd);
            });
        for (auto& w : writers) w.join();
        std::string text;
        const auto count = [&](const std::string& what) {
            std::size_t n = 0;
            for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; ++at) ++n;
            return n;
        };
        while (count(" OK RUN seq=") < 3) {
            pollfd p{fd_, POLLIN, 0};
            ASSERT_GT(::poll(&p, 1, 10000), 0) << text;
            char buffer[512];
            const ssize_t n = ::read(fd_, buffer, sizeof buffer);
            ASSERT_GT(n, 0);
            text.append(buffer, static_cast<std::size_t>(n));
        }
        for (char who : {'a', 'b', 'c'}) EXPECT_EQ(count(fmt::format("@{}{} OK RUN seq=", who, round)), 1u) << text;
        for (int s = 1; s <= 3; ++s) EXPECT_EQ(count(fmt::format(" OK RUN seq={}\n", 3 * round + s)), 1u) << text;
    }
}

TEST_F(FaultTest, ReaderThatClosesInTheMiddleOfAReplyHarmsNobody) {
    up();
    stage("ds_cnn_random");
    open_tty();
    for (int i = 0; i < 5; ++i) {
        say("RUN");
        char some[20];
        ASSERT_GT(::read(fd_, some, sizeof some), 0);
        ::close(fd_);
        fd_ = ::open(registry_.ttys()[0].second.c_str(), O_RDWR | O_NOCTTY);
        ASSERT_GE(fd_, 0);
        std::string rest = answer(10000);  // what was on its way still comes, whole lines
        EXPECT_NE(rest.find("OK RUN seq=" + std::to_string(i + 1)), std::string::npos) << rest;
    }
    run_is_right("afterwards");
}

// The rings fill, the firmware's own buffer too, and the questions wait where they are: no reply is lost or doubled.
TEST_F(FaultTest, FullRingLosesNoReply) {
    up();
    open_tty();
    std::string questions;
    constexpr int kQuestions = 500;
    for (int i = 0; i < kQuestions; ++i) questions += fmt::format("@{} {}\n", i, i % 2 == 0 ? "INFO" : "STATUS");
    questions += "@last PING\n";
    for (std::size_t at = 0; at < questions.size();) {  // whole messages full of questions, and nobody reads
        const ssize_t n = ::write(fd_, questions.data() + at, questions.size() - at);
        ASSERT_GT(n, 0);
        at += static_cast<std::size_t>(n);
    }
    std::string text;
    while (text.find("@last PONG") == std::string::npos) {
        pollfd p{fd_, POLLIN, 0};
        ASSERT_GT(::poll(&p, 1, 60000), 0) << text.size() << " bytes, trace: " << rproc_->read_trace(0);
        char buffer[4096];
        const ssize_t n = ::read(fd_, buffer, sizeof buffer);
        ASSERT_GT(n, 0);
        text.append(buffer, static_cast<std::size_t>(n));
    }
    for (int i = 0; i < kQuestions; ++i) {
        const std::string end = fmt::format("@{} OK {}\n", i, i % 2 == 0 ? "INFO" : "STATUS");
        const auto at = text.find(end);
        ASSERT_NE(at, std::string::npos) << end;
        EXPECT_EQ(text.find(end, at + 1), std::string::npos) << end;
    }
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), kQuestions / 2 * 5 + 1);
}

TEST_F(FaultTest, LinuxStopsInTheMiddleOfARunAgainAndAgain) {
    up();
    stage("resnet8_random");
    for (int i = 0; i < 10; ++i) {
        open_tty();
        say("RUN");
        std::this_thread::sleep_for(std::chrono::microseconds(500 * i));
        ASSERT_EQ(rproc_->write_state("stop"), 0);
        ::close(fd_);
        fd_ = -1;
        ASSERT_TRUE(registry_.ttys().empty());
    }
    open_tty();
    run_is_right("after ten of them");
}

TEST_F(FaultTest, FirmwareWithoutResourceTableRunsAndHasNoTty) {
    up();
    const std::string_view name = ".resource_table";
    const auto at = std::search(elf_.begin(), elf_.end(), name.begin(), name.end());
    ASSERT_NE(at, elf_.end());
    *(at + 1) = 'X';
    ASSERT_EQ(rproc_->write_state("start"), 0);
    EXPECT_TRUE(log_.contains("No resource table in elf"));
    EXPECT_EQ(rproc_->read_state(), "running\n");
    const std::uint32_t before = control().heartbeat;
    for (int i = 0; i < 2000 && control().heartbeat < before + 3; ++i) std::this_thread::sleep_for(1ms);
    EXPECT_GE(control().heartbeat, before + 3) << "the firmware is alive, as the control block shows";
    EXPECT_TRUE(registry_.ttys().empty());
    EXPECT_EQ(rproc_->trace_count(), 0u);
}

TEST_F(FaultTest, RawBinaryIsNoFirmware) {
    up();
    elf_.erase(elf_.begin(), elf_.begin() + 0x98);  // from the vector table on, as objcopy -O binary makes it
    EXPECT_EQ(rproc_->write_state("start"), -EINVAL);
    EXPECT_EQ(rproc_->read_state(), "offline\n");
}

TEST_F(FaultTest, SegmentOutsideEveryRegionIsNamed) {
    up();
    std::uint32_t headers = 0;
    std::memcpy(&headers, elf_.data() + 28, 4);
    const std::uint32_t nowhere = 0xA8000000;
    std::memcpy(elf_.data() + headers + 12, &nowhere, 4);
    EXPECT_EQ(rproc_->write_state("start"), -EINVAL);
    EXPECT_TRUE(log_.contains("bad phdr da 0xa8000000"));
    EXPECT_EQ(rproc_->read_state(), "offline\n");
}

}  // namespace
}  // namespace talpa::board
