#include "firmware/chip/clock.h"

#include "firmware/chip/registers.h"
#include "link/control_block.h"
#include "link/memory_map.h"

namespace talpa::firmware {
namespace {
constinit volatile std::uint32_t ticks = 0;
constexpr unsigned kHeartbeatMs = 10;
constexpr unsigned kLowestPriority = 7;
}  // namespace

void clock_start() {
    reg32(scs::kDemcr) |= scs::kDemcrTrcena;
    reg32(scs::kDwtCyccnt) = 0;
    reg32(scs::kDwtCtrl) |= 1;
    reg32(scs::kShpr3) = (reg32(scs::kShpr3) & 0x00FFFFFF) | (kLowestPriority << 29);
    reg32(scs::kSystRvr) = kCoreHz / 1000 - 1;
    reg32(scs::kSystCvr) = 0;
    reg32(scs::kSystCsr) = 7;  // core clock, interrupt, enable
}

std::uint32_t clock_ms() {
    return ticks;
}
std::uint32_t clock_cycles() {
    return reg32(scs::kDwtCyccnt);
}

}  // namespace talpa::firmware

// The heartbeat beats from here, so that Linux can tell a busy firmware from a dead one.
extern "C" void systick_handler() {
    using namespace talpa::firmware;
    const std::uint32_t now = ticks + 1;
    ticks = now;
    if (now % kHeartbeatMs == 0) {
        auto* const control =
            reinterpret_cast<volatile talpa::link::ControlBlock*>(std::uintptr_t{talpa::link::kControlBlock.base});
        control->heartbeat = control->heartbeat + 1;
    }
}
