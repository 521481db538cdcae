// The memory protection unit (PMSAv8, eight regions) and the default memory map under it (manual B7, B9).
#pragma once

#include <array>

#include "board/cpu/types.h"

namespace talpa::board::cpu {

enum class Use : u8 { Read, Write, Execute };

struct Attributes {
    bool allowed = false;
    bool device = false;  ///< unaligned accesses fault
};

class Mpu {
  public:
    static constexpr unsigned kRegions = 8;
    // MPU_CTRL
    static constexpr u32 kEnable = 1;
    static constexpr u32 kHardFaultEnable = 2;
    static constexpr u32 kPrivilegedDefault = 4;

    void reset() { *this = {}; }

    /// What `use` of `address` is; `negative_priority` while HardFault, NMI or FAULTMASK rule.
    [[nodiscard]] Attributes check(u32 address, bool privileged, Use use, bool negative_priority) const;
    /// Whether all bytes of a 4 KiB page get the same answer.
    [[nodiscard]] bool uniform(u32 address) const;
    /// The lone enabled region that holds the address; -1 for none, -2 for several.
    [[nodiscard]] int region_of(u32 address) const;
    [[nodiscard]] bool enabled() const { return (control & kEnable) != 0; }

    u32 control = 0;
    u32 number = 0;
    std::array<u32, kRegions> rbar{};
    std::array<u32, kRegions> rlar{};
    std::array<u32, 2> mair{};

  private:
    [[nodiscard]] Attributes default_map(u32 address, Use use) const;
};

}  // namespace talpa::board::cpu
