// The bare-metal driver of src/npu/ on the simulated device: what happens on a host is what the M33 would see.
#include "npu/driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/host/file.h"
#include "base/host/testing.h"
#include "npu_model/delegate_for_test.h"
#include "npu_model/device/bus_for_test.h"

namespace talpa::npu_model {
namespace {

using namespace npu::reg;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// One delegate of a golden program, its memory mapped as on the i.MX 93: everything in DRAM (AXI1) but the fast
/// scratch.
class DriverTest : public ::testing::Test {
  protected:
    testing::TestMemory memory;
    DeviceOptions device_options;
    npu::DriverOptions driver_options;
    std::unique_ptr<RegisterDevice> device;
    std::unique_ptr<testing::TestBus> bus;
    std::unique_ptr<npu::Driver> driver;
    std::vector<testing::Delegate> delegates;

    void SetUp() override {
        load("ops/int8_io_conv");
        make();
    }
    void load(const std::string& program) {
        const auto name = program.substr(program.find('/') + 1);
        delegates =
            testing::delegates_in(host::read_file(talpa::testing::golden_folder() / program / (name + ".pte")).value());
        ASSERT_FALSE(delegates.empty());
        map(delegates[0]);
    }
    void map(testing::Delegate& delegate) {
        const npu::Job job = delegate.job();
        memory = {};
        auto* stream = const_cast<std::uint32_t*>(job.stream.data());
        memory.map(0xC0000000, {reinterpret_cast<std::uint8_t*>(stream), job.stream.size() * 4}, 1);
        constexpr std::array<std::uint64_t, npu::kRegionCount> kBases{0xD0000000, 0xA8000000, 0x20480000, 0xE0000000,
                                                                      0xE1000000, 0xE2000000, 0xE3000000, 0xE4000000};
        for (unsigned r = 0; r < npu::kRegionCount; ++r)
            if (job.regions[r].data != nullptr)
                memory.map(kBases[r], {job.regions[r].data, job.regions[r].size}, r == 2 ? 0 : 1);
        // The defaults of the public driver have the arena in DRAM but inputs and outputs of their own in SRAM.
        for (unsigned r = 0; r < npu::kRegionCount; ++r) driver_options.region_config[r] = r == 2 ? 1 : 2;
    }
    void make() {
        device = std::make_unique<RegisterDevice>(memory, nullptr, device_options);
        bus = std::make_unique<testing::TestBus>(*device, memory);
        driver = std::make_unique<npu::Driver>(*bus, driver_options);
    }
    Result<npu::JobStats> run() { return driver->run(delegates[0].job()); }
    std::string complaint() {
        const auto result = run();
        return result ? "success" : host::Error(result.error()).message;
    }
    /// The command stream, to be spoiled.
    std::span<std::uint32_t> stream() {
        const npu::Words words = delegates[0].payload().stream;
        return {const_cast<std::uint32_t*>(words.data()), words.size()};
    }
};

TEST_F(DriverTest, AGoldenProgramGivesItsExpectedBytes) {
    const auto folder = talpa::testing::golden_folder() / "ops/int8_io_conv";
    delegates[0].set_input(0, host::read_file(folder / "in0.bin").value());
    const auto stats = run();
    ASSERT_TRUE(stats) << host::Error(stats.error()).message << device->fault_text();
    EXPECT_EQ(delegates[0].output(0), host::read_file(folder / "out0.bin").value());
    EXPECT_GT(stats->cycles, 100u);
    EXPECT_EQ(driver->last_status() & 0xFFFF, npu::status::kEndReached);
    EXPECT_EQ(driver->last_qread(), stream().size() * 4);
    EXPECT_EQ(driver->config(), npu::kConfigU65_256);
    EXPECT_EQ(driver->id(), npu::kIdU65);
    std::size_t regions = 0;
    for (const auto& region : delegates[0].job().regions) regions += region.size;
    EXPECT_EQ(bus->cleaned, regions + stream().size() * 4);
    EXPECT_EQ(bus->invalidated, regions - delegates[0].job().regions[0].size);
    EXPECT_TRUE(bus->faults.empty());
}

// The device runs one operation at a time, the model a whole stream: both must leave the same bytes, whatever the
// program.
TEST_F(DriverTest, EveryGoldenProgramLeavesWhatTheModelLeaves) {
    std::mt19937 random(3);
    unsigned compared = 0;
    for (const auto& entry : std::filesystem::directory_iterator(talpa::testing::golden_folder() / "ops")) {
        const std::string name = entry.path().filename().string();
        if (!std::filesystem::exists(entry.path() / (name + ".pte"))) continue;
        delegates = testing::delegates_in(host::read_file(entry.path() / (name + ".pte")).value());
        auto reference = testing::delegates_in(host::read_file(entry.path() / (name + ".pte")).value());
        for (std::size_t d = 0; d < delegates.size(); ++d) {
            for (std::size_t i = 0; i < delegates[d].inputs().size(); ++i) {
                std::vector<std::uint8_t> bytes(delegates[d].inputs()[i].size_bytes);
                for (auto& b : bytes) b = static_cast<std::uint8_t>(random());
                delegates[d].set_input(i, bytes);
                reference[d].set_input(i, bytes);
            }
            map(delegates[d]);
            make();
            const auto result = driver->run(delegates[d].job());
            ASSERT_TRUE(result) << name << ": " << host::Error(result.error()).message << " " << device->fault_text();
            Model model;
            ASSERT_TRUE(model.run(reference[d].job())) << name;
            for (std::size_t i = 0; i < delegates[d].outputs().size(); ++i)
                EXPECT_EQ(delegates[d].output(i), reference[d].output(i)) << name;
            ++compared;
        }
    }
    EXPECT_GE(compared, 40u);
}

TEST_F(DriverTest, RegistersAreProgrammedInTheDocumentedOrder) {
    ASSERT_TRUE(run());
    const auto at = [&](const std::string& what) {
        return std::find(bus->log.begin(), bus->log.end(), what) - bus->log.begin();
    };
    const auto reg = [](std::uint32_t offset) { return "w" + std::to_string(offset); };
    EXPECT_LT(at("on"), at(reg(RESET)));
    EXPECT_LT(at(reg(RESET)), at(reg(QCONFIG)));
    EXPECT_LT(at(reg(AXI_LIMIT3)), at(reg(QBASE0)));
    EXPECT_LT(at(reg(QBASE0)), at(reg(QSIZE)));
    EXPECT_LT(at(reg(QSIZE)), at(reg(kBasep)));
    EXPECT_LT(at(reg(REGIONCFG)), at("barrier"));
    EXPECT_LT(at("barrier"), at("wait"));
    EXPECT_EQ(bus->log.back(), "off");
}

TEST_F(DriverTest, JobsFollowOneAnother) {
    ASSERT_TRUE(run());
    ASSERT_TRUE(run());
    device_options.forgets_when_gated = true;
    make();
    EXPECT_TRUE(run()) << "a part that forgets its registers when it may sleep";
}

TEST_F(DriverTest, AnotherPartIsNamed) {
    device_options.config = 0x10006009;
    make();
    EXPECT_EQ(complaint(), "NPU config match: this driver is for ethos-u65-256, this NPU is an ethos-u65-512");
    driver_options.config = 0x10006009;
    make();
    EXPECT_EQ(complaint(), "NPU config match: the program is compiled for ethos-u65-256, this NPU is an ethos-u65-512");
    device_options = {};
    device_options.id = 0x20066001;
    driver_options.config = npu::kConfigU65_256;
    make();
    EXPECT_EQ(complaint(), "NPU arch match: the program needs architecture 1.0, this NPU has 2.0");
}

TEST_F(DriverTest, WithoutClockNobodyAnswers) {
    bus->unclocked = true;
    device->set_powered(false);
    EXPECT_EQ(complaint(), "no NPU answers: CONFIG reads 0x0. Are its power domain and clocks on?");
    EXPECT_EQ(driver->initialise().error().code, ErrorCode::DelegateIncompatible);
    bus->unclocked = false;
    EXPECT_TRUE(run());
}

TEST_F(DriverTest, PowerThatDoesNotComeIsTheError) {
    bus->power_fails = true;
    EXPECT_EQ(complaint(), "no power for MLMIX");
    EXPECT_EQ(bus->log, std::vector<std::string>{"on"});
}

TEST_F(DriverTest, AResetThatNeverEndsTimesOut) {
    device_options.reset_reads = 1000;
    driver_options.reset_polls = 100;
    make();
    EXPECT_EQ(complaint(), "the NPU stayed in reset for 100 reads of STATUS");
    driver_options.reset_polls = 2000;
    make();
    EXPECT_TRUE(run());
}

TEST_F(DriverTest, AMasterWithoutRightsIsTold) {
    bus->master.secure = false;
    EXPECT_EQ(complaint(),
              "NPU PROT reads 3 where 1 was asked for: this CPU may not give the NPU that privilege or security");
    driver_options.secure = false;
    make();
    bus->master.secure = false;
    EXPECT_TRUE(run());
}

TEST_F(DriverTest, AStreamThatNeverEndsTimesOutAndTheNpuRecovers) {
    driver_options.timeout_ms = 25;
    make();
    bus->hangs = true;
    EXPECT_EQ(complaint(), "the NPU still runs after 25 ms, at command stream offset 0 (STATUS 0x1)");
    ASSERT_EQ(bus->faults.size(), 1u);
    EXPECT_EQ(bus->log.back(), "off");
    bus->hangs = false;
    EXPECT_TRUE(run());
}

// Where power cannot be taken away, only the reset keeps a hanging NPU from writing into memory that others use by now.
TEST_F(DriverTest, AfterATimeoutTheNpuStandsStill) {
    bus->hangs = bus->always_on = true;
    EXPECT_FALSE(run());
    EXPECT_EQ(device->read_register(STATUS).value(), 0u);
    EXPECT_FALSE(device->run_pending());
}

TEST_F(DriverTest, ALostInterruptIsToldFromAHangingNpu) {
    bus->on_wait = [&] {
        device->run_pending();
        return false;
    };
    EXPECT_EQ(complaint(),
              "the NPU stopped (STATUS 0xffff0022) but no interrupt came within 10000 ms: is its line enabled?");
}

TEST_F(DriverTest, SpuriousInterruptsAndIrqCommandsArePassedOver) {
    stream()[0] = static_cast<std::uint32_t>(npu::Op::IRQ) | 1u << 16;  // instead of PARALLEL_MODE 0
    int waits = 0;
    bus->on_wait = [&] {
        if (++waits == 1) return true;  // nothing happened yet
        while (!device->interrupt_line() && device->step()) {
        }
        return device->interrupt_line();
    };
    EXPECT_TRUE(run());
    EXPECT_EQ(waits, 3) << "spurious, IRQ, STOP";
}

TEST_F(DriverTest, ParseErrorsNameTheOffset) {
    stream()[10] = 0x00000007;
    const std::string text = complaint();
    EXPECT_THAT(text, StartsWith("cmd_parse_error: illegal command, command stream offset 40 (STATUS "));
    EXPECT_EQ(driver->last_status() & npu::status::kErrors, npu::status::kParseError);
    stream()[10] = stream()[0];
    EXPECT_TRUE(run()) << "reset has cleared the error";
}

TEST_F(DriverTest, BusErrorsNameChannelAndPort) {
    auto job = delegates[0].job();
    job.regions[1] = {};  // nothing behind the scratch
    const auto result = driver->run(job);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::NpuFault);
    EXPECT_THAT(host::Error(result.error()).message, StartsWith("bus_status_error: the "));
    EXPECT_THAT(host::Error(result.error()).message, HasSubstr(" on AXI1 was refused, command stream offset "));
    EXPECT_EQ(bus->faults.size(), 1u);
    EXPECT_TRUE(run());
}

TEST_F(DriverTest, TheOldRegionConfigurationIsABusErrorForAnArenaInDram) {
    driver_options.region_config = {3, 0, 1, 1, 1, 1, 1, 1};
    make();
    EXPECT_THAT(complaint(), HasSubstr("bus_status_error: the IFM read on AXI0 was refused"));
}

TEST_F(DriverTest, BadWeightsAreAWeightFault) {
    const auto region = delegates[0].job().regions[0];
    std::fill(region.data, region.data + region.size, std::uint8_t{0x04});  // ZDIV 4 is illegal
    EXPECT_THAT(complaint(), StartsWith("wd_fault: the weight decoder met an illegal stream, command stream offset "));
}

TEST_F(DriverTest, JobsThatCannotBeProgrammedAreRefusedBeforehand) {
    auto job = delegates[0].job();
    const auto refused = [&](const npu::Job& j) {
        const auto result = driver->run(j);
        return result ? "success" : host::Error(result.error()).message;
    };
    auto unaligned = job;
    unaligned.stream = job.stream.subspan(1);
    EXPECT_EQ(refused(unaligned),
              "the command stream at NPU address 0xc0000004: not 16-byte aligned or beyond 40 bits");
    auto empty = job;
    empty.stream = {};
    EXPECT_EQ(refused(empty), "the job has no command stream");
    auto region = job;
    region.regions[1].data += 8;
    EXPECT_THAT(refused(region), HasSubstr("region 1 at NPU address 0xa8000008"));
    EXPECT_EQ(bus->log.back(), "off");
    EXPECT_TRUE(driver->run(job));
}

}  // namespace
}  // namespace talpa::npu_model
