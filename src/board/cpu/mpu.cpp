#include "board/cpu/mpu.h"

namespace talpa::board::cpu {

Attributes Mpu::default_map(u32 address, Use use) const {
    // Eighths of the address space: code, SRAM, peripherals, RAM x2, device x2, system. The device parts and the system
    // are execute-never.
    const u32 eighth = address >> 29;
    const bool device = eighth == 2 || eighth >= 5;
    return {!(device && use == Use::Execute), device};
}

int Mpu::region_of(u32 address) const {
    int found = -1;
    for (unsigned i = 0; i < kRegions; i++) {
        if ((rlar[i] & 1) == 0 || address < (rbar[i] & ~31U) || address > (rlar[i] | 31U)) continue;
        if (found >= 0) return -2;
        found = static_cast<int>(i);
    }
    return found;
}

bool Mpu::uniform(u32 address) const {
    if (!enabled()) return true;
    const u32 first = address & ~0xFFFU;
    const u32 last = address | 0xFFFU;
    for (unsigned i = 0; i < kRegions; i++) {
        if ((rlar[i] & 1) == 0) continue;
        const u32 base = rbar[i] & ~31U;
        const u32 limit = rlar[i] | 31U;
        const bool apart = limit < first || base > last;
        const bool covers = base <= first && limit >= last;
        if (!apart && !covers) return false;
    }
    return true;
}

Attributes Mpu::check(u32 address, bool privileged, Use use, bool negative_priority) const {
    // The private peripheral bus is never subject to the MPU; its own rules are in scs.cpp.
    if (!enabled() || (address >> 20) == 0xE00 || (negative_priority && (control & kHardFaultEnable) == 0))
        return default_map(address, use);
    const int region = region_of(address);
    if (region == -2) return {};  // overlapping regions
    if (region == -1) {
        if (!privileged || (control & kPrivilegedDefault) == 0) return {};
        return default_map(address, use);
    }
    const u32 r = rbar[static_cast<unsigned>(region)];
    const u32 attribute = bits(rlar[static_cast<unsigned>(region)], 1, 3);
    const u32 memory = (mair[attribute / 4] >> (8 * (attribute % 4))) & 0xFF;
    const bool device = (memory & 0xF0) == 0;
    const bool any = bit(r, 1);
    const bool read_only = bit(r, 2);
    const bool never = bit(r, 0);
    const bool allowed = (privileged || any) && !(use == Use::Write && read_only) &&
                         !(use == Use::Execute && (never || device)) && !(use == Use::Execute && (address >> 29) == 7);
    return {allowed, device};
}

}  // namespace talpa::board::cpu
