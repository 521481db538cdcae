#include "npu_model/device/device.h"

#include <gtest/gtest.h>

#include <thread>

#include "npu/commands.h"
#include "npu_model/device/bus_for_test.h"

namespace talpa::npu_model {
namespace {

using namespace npu::reg;
namespace status = npu::status;
namespace cmd = npu::cmd;
using npu::Cmd0;
using npu::Cmd1;
using npu::Op;

std::uint32_t cmd0(auto code, unsigned parameter) {
    return static_cast<std::uint32_t>(code) | (parameter << 16);
}

/// Memory with a command stream at 0x80000000 (AXI1) and 64 KiB of SRAM at 0x20480000 (AXI0).
class RegisterDeviceTest : public ::testing::Test {
  protected:
    static constexpr std::uint64_t kDram = 0x80000000, kSram = 0x20480000;
    std::vector<std::uint8_t> dram = std::vector<std::uint8_t>(1 << 16), sram = std::vector<std::uint8_t>(1 << 16);
    testing::TestMemory memory;
    std::vector<bool> line;
    DeviceOptions options;
    std::unique_ptr<RegisterDevice> device;

    void SetUp() override {
        memory.map(kDram, dram, 1);
        memory.map(kSram, sram, 0);
        make();
    }
    void make() {
        line.clear();
        device = std::make_unique<RegisterDevice>(memory, [this](bool level) { line.push_back(level); }, options);
    }
    std::uint32_t read(std::uint32_t offset) { return device->read_register(offset).value(); }
    void write(std::uint32_t offset, std::uint32_t value) { ASSERT_TRUE(device->write_register(offset, value)); }
    /// Puts a stream at kDram + 0x8000 and starts it; region 0 and 1 in DRAM, region 2 in SRAM.
    void start(const std::vector<std::uint32_t>& words) {
        for (std::size_t i = 0; i < words.size(); ++i) store_le(dram.data() + 0x8000 + 4 * i, words[i]);
        write(QCONFIG, 2);
        write(REGIONCFG, 2 | 2 << 2 | 0 << 4);
        for (const std::uint32_t region : {0u, 1u}) write(kBasep + 8 * region, kDram);
        write(kBasep + 16, kSram);
        write(QBASE0, kDram + 0x8000);
        write(QBASE1, 0);
        write(QSIZE, static_cast<std::uint32_t>(words.size() * 4));
        write(CMD, 0xC | cmd::kRun);
    }
    /// A DMA of 64 bytes from DRAM to SRAM.
    static std::vector<std::uint32_t> copy(std::uint32_t source = 0x100, std::uint32_t destination = 0x40,
                                           std::uint32_t length = 64) {
        return {cmd0(Cmd0::DMA0_SRC_REGION, 1),
                cmd0(Cmd0::DMA0_DST_REGION, 2),
                cmd0(Cmd1::DMA0_SRC, 0) | 0x4000,
                source,
                cmd0(Cmd1::DMA0_DST, 0) | 0x4000,
                destination,
                cmd0(Cmd1::DMA0_LEN, 0) | 0x4000,
                length,
                cmd0(Op::DMA_START, 0)};
    }
    static std::vector<std::uint32_t> with_stop(std::vector<std::uint32_t> words) {
        words.push_back(cmd0(Op::STOP, 0xFFFF));
        return words;
    }
};

TEST_F(RegisterDeviceTest, RegistersHaveTheirResetValues) {
    EXPECT_EQ(read(ID), 0x10066001u);
    EXPECT_EQ(read(CONFIG), 0x10003008u);
    EXPECT_EQ(read(CMD), 0xCu);
    EXPECT_EQ(read(STATUS), 0u) << "a reset is over at once";
    EXPECT_EQ(read(PMCR), 0x2000u);
    EXPECT_EQ(read(CID0), 0x0Du);
    EXPECT_EQ(read(PID1), 0xB5u);
    for (const std::uint32_t offset : {QBASE0, QSIZE, QREAD, PROT, REGIONCFG, AXI_LIMIT0, LOCK, 0xFFCu - 0x400})
        EXPECT_EQ(read(offset), 0u) << offset;
}

TEST_F(RegisterDeviceTest, OtherPartsSayWhoTheyAre) {
    for (const npu::Hardware& h : npu::kHardware) {
        options.config = h.config;
        options.id = h.id;
        make();
        EXPECT_EQ(read(CONFIG), h.config);
        EXPECT_EQ(read(ID), h.id);
    }
}

TEST_F(RegisterDeviceTest, AStreamRunsToItsStop) {
    for (std::size_t i = 0; i < 64; ++i) dram[0x100 + i] = static_cast<std::uint8_t>(i + 1);
    const auto words = with_stop(copy());
    start(words);
    EXPECT_EQ(read(STATUS), status::kRunning);
    EXPECT_TRUE(device->run_pending());
    EXPECT_EQ(read(STATUS), 0xFFFF0000u | status::kEndReached | status::kIrqRaised);
    EXPECT_EQ(read(QREAD), words.size() * 4);
    EXPECT_TRUE(std::equal(sram.begin() + 0x40, sram.begin() + 0x80, dram.begin() + 0x100));
    EXPECT_EQ(line, std::vector<bool>{true});
    EXPECT_FALSE(device->run_pending());

    write(CMD, 0xC | cmd::kClearIrq);
    EXPECT_EQ(line, (std::vector{true, false}));
    EXPECT_EQ(read(STATUS), 0xFFFF0000u | status::kEndReached);
    write(CMD, 0xC | 0x0F0F0000);
    EXPECT_EQ(read(STATUS), 0xF0F00000u | status::kEndReached);
    write(QSIZE, 4);
    EXPECT_EQ(read(STATUS) & status::kEndReached, 0u);
    EXPECT_EQ(read(QREAD), 0u);
}

TEST_F(RegisterDeviceTest, CommandRegistersCanBeReadBack) {
    start(with_stop(copy(0x100, 0x40, 64)));
    device->run_pending();
    // 0x800 + 0x40 * group + 4 * index; with payload 0xA00 + 0x40 * group + 8 * index (section 2.2).
    EXPECT_EQ(read(0x800 + 0xC0), 1u) << "DMA0_SRC_REGION";
    EXPECT_EQ(read(0x800 + 0xC4), 2u) << "DMA0_DST_REGION";
    EXPECT_EQ(read(0xA00 + 0xC0 + 8), 0x40u) << "DMA0_DST";
    EXPECT_EQ(read(0xA00 + 0xC0 + 16), 64u) << "DMA0_LEN";
    EXPECT_EQ(read(CURRENT_OP), cmd0(Op::STOP, 0xFFFF));
}

TEST_F(RegisterDeviceTest, TheTablesShowInTheWindowOnTheSharedRam) {
    dram[0x100] = 0xAB;
    auto words = copy(0x100, 0xB800, 256);
    words[1] = cmd0(Cmd0::DMA0_DST_REGION, 0x103);
    start(with_stop(words));
    device->run_pending();
    EXPECT_EQ(read(STATUS) & status::kErrors, 0u) << device->fault_text();
    write(DEBUG_ADDRESS, 46);
    EXPECT_EQ(read(kShramWindow), 0xABu);
    write(DEBUG_ADDRESS, 0xFFFFFFFF);
    EXPECT_EQ(read(kShramWindow), 0u);
}

TEST_F(RegisterDeviceTest, IrqCommandsInterruptAndTheStreamRunsOn) {
    std::vector<std::uint32_t> words{cmd0(Op::IRQ, 0x0001)};
    for (const std::uint32_t w : copy()) words.push_back(w);
    start(with_stop(words));
    EXPECT_TRUE(device->step());
    EXPECT_EQ(read(STATUS), 0x00010000u | status::kRunning | status::kIrqRaised);
    write(CMD, 0xC | cmd::kClearIrq);
    device->run_pending();
    EXPECT_EQ(read(STATUS), 0xFFFF0000u | status::kEndReached | status::kIrqRaised);
    EXPECT_EQ(line, (std::vector{true, false, true}));
}

TEST_F(RegisterDeviceTest, AStreamWithoutStopEndsAtQsize) {
    start(copy());
    device->run_pending();
    EXPECT_EQ(read(STATUS), status::kEndReached | status::kIrqRaised);
    EXPECT_EQ(read(QREAD), copy().size() * 4);
}

TEST_F(RegisterDeviceTest, AStopRequestHaltsBetweenOperationsAndRunContinues) {
    auto words = copy();
    words.push_back(cmd0(Op::DMA_START, 0));
    start(with_stop(words));
    EXPECT_TRUE(device->step());
    write(CMD, 0xC | cmd::kStop);
    EXPECT_TRUE(device->step());
    EXPECT_FALSE(device->step());
    EXPECT_EQ(read(STATUS), 0u);
    EXPECT_EQ(read(QREAD), 36u);
    write(CMD, 0xC | cmd::kRun);
    device->run_pending();
    EXPECT_EQ(read(STATUS), 0xFFFF0000u | status::kEndReached | status::kIrqRaised);
}

TEST_F(RegisterDeviceTest, IllegalWordsAreParseErrors) {
    start(with_stop({0x00000007}));
    device->run_pending();
    EXPECT_EQ(read(STATUS), status::kParseError | status::kIrqRaised);
    EXPECT_EQ(read(QREAD), 0u);
    EXPECT_EQ(device->fault_text(), "command stream offset 0: no command has code 0x7");
    write(CMD, 0xC | cmd::kClearIrq | cmd::kRun);
    EXPECT_FALSE(device->run_pending()) << "only a reset clears an error";
    write(RESET, 0);
    EXPECT_EQ(read(STATUS), 0u);
    EXPECT_EQ(read(QSIZE), 0u);
}

TEST_F(RegisterDeviceTest, AccessesOutsideMemoryAreBusFaultsOfTheirChannel) {
    struct Case {
        std::vector<std::uint32_t> words;
        unsigned channel, port;
    };
    for (const Case& c : {Case{copy(0xFFF0), 4, 1}, Case{copy(0x100, 0xFFF0), 9, 0}}) {
        make();
        start(with_stop(c.words));
        device->run_pending();
        const std::uint32_t s = read(STATUS);
        EXPECT_EQ(s & status::kErrors, status::kBusError) << device->fault_text();
        EXPECT_EQ(status::faulting_channel(s), c.channel);
        EXPECT_EQ(status::faulting_interface(s), c.port);
        EXPECT_EQ(read(QREAD), 32u) << "the DMA's command";
    }
    make();
    start(with_stop(copy()));
    write(QBASE0, 0x70000000);
    device->run_pending();
    EXPECT_EQ(status::faulting_channel(read(STATUS)), 0u);
    EXPECT_NE(read(STATUS) & status::kBusError, 0u);
}

TEST_F(RegisterDeviceTest, AWrongRegionConfigurationIsABusFault) {
    start(with_stop(copy()));
    write(REGIONCFG, 0);  // region 1 is in DRAM, which AXI0 does not reach
    device->run_pending();
    EXPECT_EQ(read(STATUS) & (status::kErrors | 1u << status::kInterfaceShift), status::kBusError);
}

TEST_F(RegisterDeviceTest, OperationsBeforeTheFaultHaveHappened) {
    dram[0x100] = 0x5A;
    auto words = copy(0x100, 0x40);
    for (const std::uint32_t w : copy(0xFFF0, 0x80)) words.push_back(w);
    start(with_stop(words));
    device->run_pending();
    EXPECT_NE(read(STATUS) & status::kBusError, 0u);
    EXPECT_EQ(sram[0x40], 0x5A);
}

TEST_F(RegisterDeviceTest, ResetTakesItsTimeAndHidesEverything) {
    options.reset_reads = 3;
    make();
    for (int i = 0; i < 3; ++i) EXPECT_EQ(read(STATUS), status::kReset);
    write(LOCK, 5);
    EXPECT_EQ(read(LOCK), 5u);
    write(RESET, 3);
    EXPECT_EQ(read(CONFIG), 0u);
    write(LOCK, 5);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(read(STATUS), status::kReset);
    EXPECT_EQ(read(STATUS), 0u);
    EXPECT_EQ(read(LOCK), 0u) << "the write fell into the reset";
    EXPECT_EQ(read(PROT), 3u);
}

TEST_F(RegisterDeviceTest, AMasterGivesNoMoreThanItHas) {
    ASSERT_TRUE(device->write_register(RESET, 1, {.secure = false, .privileged = true}));
    EXPECT_EQ(read(PROT), 3u) << "non-secure stays non-secure";
    ASSERT_TRUE(device->write_register(RESET, 1, {.secure = true, .privileged = false}));
    EXPECT_EQ(read(PROT), 0u);
}

TEST_F(RegisterDeviceTest, WithoutPowerNothingAnswersAndRegistersAreLost) {
    write(LOCK, 5);
    device->set_powered(false);
    EXPECT_EQ(device->read_register(CONFIG).error().code, ErrorCode::AccessFailed);
    EXPECT_EQ(device->write_register(LOCK, 1).error().code, ErrorCode::AccessFailed);
    device->set_powered(true);
    EXPECT_EQ(read(LOCK), 0u);
    EXPECT_FALSE(device->read_register(2));
    EXPECT_FALSE(device->read_register(0x1000));
}

TEST_F(RegisterDeviceTest, CountersCountOnlyWhenEnabled) {
    start(with_stop(copy()));
    device->run_pending();
    EXPECT_EQ(read(PMCCNTR_LO), 0u);
    write(PMCR, npu::pmu::kEnable);
    write(PMCNTENSET, npu::pmu::kCycleCounter | 3);
    write(kPmevtyper, 0x187);     // write beats on AXI1: none, the copy goes to SRAM
    write(kPmevtyper + 4, 0x87);  // on AXI0
    write(QSIZE, static_cast<std::uint32_t>(with_stop(copy()).size() * 4));
    write(CMD, 0xC | cmd::kRun);
    device->run_pending();
    EXPECT_GT(read(PMCCNTR_LO), 0u);
    EXPECT_EQ(read(kPmevcntr), 0u);
    EXPECT_EQ(read(kPmevcntr + 4), 4u) << "64 bytes at 16 a beat";
    write(PMCNTENCLR, npu::pmu::kCycleCounter);
    EXPECT_EQ(read(PMCNTENSET), 3u);
    write(PMCR, npu::pmu::kResetCycles | npu::pmu::kResetEvents);
    EXPECT_EQ(read(PMCCNTR_LO), 0u);
    EXPECT_EQ(read(kPmevcntr + 4), 0u);
}

TEST_F(RegisterDeviceTest, AnOverflowInterruptsWhereItIsAskedTo) {
    write(PMCR, npu::pmu::kEnable);
    write(PMCNTENSET, npu::pmu::kCycleCounter);
    write(PMINTSET, npu::pmu::kCycleCounter);
    write(PMCCNTR_LO, 0xFFFFFFFF);
    write(PMCCNTR_HI, 0xFFFF);
    start(with_stop(copy()));
    device->run_pending();
    EXPECT_EQ(read(PMOVSSET), npu::pmu::kCycleCounter);
    EXPECT_NE(read(STATUS) & status::kPmuIrqRaised, 0u);
    EXPECT_LT(read(PMCCNTR_LO), 0x10000u);
    write(PMOVSCLR, npu::pmu::kCycleCounter);
    write(CMD, 0xC | cmd::kClearIrq);
    EXPECT_EQ(read(STATUS) & status::kPmuIrqRaised, 0u);
}

TEST_F(RegisterDeviceTest, ResettingWhileAnotherThreadRunsStopsIt) {
    std::vector<std::uint32_t> words = copy();
    for (int i = 0; i < 100000; ++i) words.push_back(cmd0(Op::DMA_START, 0));
    dram.resize(1 << 20);
    memory.map(kDram, dram, 1);
    start(with_stop(words));
    std::thread npu([&] { EXPECT_TRUE(device->run_pending()); });
    while (read(QREAD) < 400) std::this_thread::yield();
    write(RESET, 0);
    while ((read(STATUS) & status::kReset) != 0) std::this_thread::yield();
    npu.join();
    EXPECT_EQ(read(STATUS), 0u);
    EXPECT_EQ(read(QREAD), 0u);
    EXPECT_TRUE(line.empty());
    EXPECT_FALSE(device->wait_for_work(std::chrono::milliseconds(1)));
    start(with_stop(copy()));
    EXPECT_TRUE(device->wait_for_work(std::chrono::milliseconds(1)));
    device->run_pending();
    EXPECT_EQ(read(STATUS) & 0xFFFF, status::kEndReached | status::kIrqRaised);
}

}  // namespace
}  // namespace talpa::npu_model
