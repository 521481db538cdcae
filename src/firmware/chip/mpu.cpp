#include "firmware/chip/mpu.h"

#include <cstdint>

#include "firmware/chip/registers.h"

namespace talpa::firmware {
namespace {

struct MpuRegion {
    std::uint32_t base;
    std::uint32_t last;  ///< last byte
};
constexpr MpuRegion kNormalMemory[] = {{0xA0000000, 0xDFFFFFFF}, {0x80000000, 0x9FFFFFFF}};

constexpr std::uint32_t kOuterShareable = 2u << 3, kReadWriteAny = 1u << 1, kExecuteNever = 1;
constexpr std::uint32_t kRegionEnable = 1;  // RLAR bit 0; bits 3:1 select attribute 0
constexpr std::uint32_t kMairNormalNonCacheable = 0x44;
constexpr std::uint32_t kMpuEnable = 7;  // ENABLE, HFNMIENA, PRIVDEFENA

}  // namespace

void protect_memory() {
    reg32(scs::kMpuCtrl) = 0;
    reg32(scs::kMpuMair0) = kMairNormalNonCacheable;
    std::uint32_t number = 0;
    for (const MpuRegion& region : kNormalMemory) {
        reg32(scs::kMpuRnr) = number++;
        reg32(scs::kMpuRbar) = region.base | kOuterShareable | kReadWriteAny | kExecuteNever;
        reg32(scs::kMpuRlar) = (region.last & ~0x1Fu) | kRegionEnable;
    }
    reg32(scs::kMpuCtrl) = kMpuEnable;
    dsb();
    isb();
}

}  // namespace talpa::firmware
