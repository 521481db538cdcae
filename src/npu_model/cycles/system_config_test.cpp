#include "npu_model/cycles/system_config.h"

#include <gtest/gtest.h>

namespace talpa::npu_model {
namespace {

// Figures of ethos-u65, section 8.4.
TEST(SystemConfig, HighEndDramIsThreeAndThreeQuartersGigabytesASecond) {
    const SystemConfig& c = default_system_config();
    EXPECT_DOUBLE_EQ(c.timing(MemoryArea::Dram).bytes_per_cycle * c.clock_hz, 3.75e9);
    EXPECT_DOUBLE_EQ(c.timing(MemoryArea::Sram).bytes_per_cycle, 16.0);
    EXPECT_EQ(
        system_config("ethos-u65-256", "client_server", "sram_only")->timing(MemoryArea::Dram).bytes_per_cycle * 1e9,
        12e9);
    EXPECT_DOUBLE_EQ(
        system_config("ethos-u65-256", "Mid_End", "Shared_Sram")->timing(MemoryArea::Dram).bytes_per_cycle * 500e6,
        3.75e9);
}

TEST(SystemConfig, MemoryModesSayWhereRegionsAre) {
    const auto dedicated = system_config("ethos-u65-256", "High_End", "Dedicated_Sram").value();
    EXPECT_EQ(dedicated.area_of(0), MemoryArea::Dram);
    EXPECT_EQ(dedicated.area_of(1), MemoryArea::Dram);
    EXPECT_EQ(dedicated.area_of(2), MemoryArea::Sram);
    const auto shared = system_config("ethos-u65-256", "High_End", "Shared_Sram").value();
    EXPECT_EQ(shared.area_of(0), MemoryArea::Dram);
    EXPECT_EQ(shared.area_of(1), MemoryArea::Sram);
    const auto only = system_config("ethos-u65-256", "High_End", "Sram_Only").value();
    EXPECT_EQ(only.area_of(0), MemoryArea::Sram);
}

TEST(SystemConfig, ALimitOfTheCacheIsPartOfAModesName) {
    EXPECT_EQ(system_config("ethos-u65-256", "High_End", "Dedicated_Sram_384KB")->mode, "Dedicated_Sram");
    EXPECT_FALSE(system_config("ethos-u65-256", "High_End", "Dedicated_Sram_384"));
}

TEST(SystemConfig, UnknownNamesAreNothing) {
    EXPECT_FALSE(system_config("ethos-u65-1024", "High_End", "Dedicated_Sram"));
    EXPECT_FALSE(system_config("ethos-u65-256", "End", "Dedicated_Sram"));
    EXPECT_FALSE(system_config("ethos-u65-256", "High_End", ""));
}

TEST(SystemConfig, ConfigWordsNameTheirNpu) {
    EXPECT_EQ(npu_config_of(0x10003008)->hardware->name, std::string("ethos-u65-256"));
    EXPECT_EQ(npu_config_of(0x10006009)->hardware->name, std::string("ethos-u65-512"));
    EXPECT_EQ(npu_config_of(0x00003008)->hardware->name, std::string("ethos-u55-256"));
    EXPECT_EQ(npu_config_of(0x20003008), nullptr);
}

}  // namespace
}  // namespace talpa::npu_model
