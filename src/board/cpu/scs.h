// The System Control Space and its neighbours on the private peripheral bus: register addresses and bits (manual D1.1,
// remoteproc spec 12.4).
#pragma once

#include <array>

#include "board/cpu/types.h"

namespace talpa::board::cpu {

class Machine;

class Scs {
  public:
    explicit Scs(Machine& machine) : machine_(machine) {}
    void reset();

    /// False is a bus error (unprivileged access, or outside the PPB's registers).
    [[nodiscard]] bool read(u32 address, unsigned size, bool privileged, u32& value);
    [[nodiscard]] bool write(u32 address, unsigned size, bool privileged, u32 value);

    // CCR
    static constexpr u32 kUnalignedTrap = 1U << 3;
    static constexpr u32 kDivideTrap = 1U << 4;
    static constexpr u32 kBusFaultIgnore = 1U << 8;
    [[nodiscard]] bool traps_unaligned() const { return (ccr & kUnalignedTrap) != 0; }
    [[nodiscard]] bool ignores_bus_faults() const { return (ccr & kBusFaultIgnore) != 0; }

    // SCR
    static constexpr u32 kSleepOnExit = 1U << 1;
    static constexpr u32 kEventOnPend = 1U << 4;

    // CFSR
    enum : u32 {
        kIaccviol = 1U << 0,
        kDaccviol = 1U << 1,
        kMunstkerr = 1U << 3,
        kMstkerr = 1U << 4,
        kMlsperr = 1U << 5,
        kMmarvalid = 1U << 7,
        kIbuserr = 1U << 8,
        kPreciserr = 1U << 9,
        kUnstkerr = 1U << 11,
        kStkerr = 1U << 12,
        kLsperr = 1U << 13,
        kBfarvalid = 1U << 15,
        kUndefinstr = 1U << 16,
        kInvstate = 1U << 17,
        kInvpc = 1U << 18,
        kNocp = 1U << 19,
        kStkof = 1U << 20,
        kUnaligned = 1U << 24,
        kDivbyzero = 1U << 25,
    };
    // HFSR
    static constexpr u32 kVecttbl = 1U << 1;
    static constexpr u32 kForced = 1U << 30;
    static constexpr u32 kDebugevt = 1U << 31;
    // FPCCR
    enum : u32 {
        kLspact = 1U << 0,
        kFpUser = 1U << 1,
        kFpThread = 1U << 3,
        kHfrdy = 1U << 4,
        kMmrdy = 1U << 5,
        kBfrdy = 1U << 6,
        kSfrdy = 1U << 7,
        kMonrdy = 1U << 8,
        kSplimviol = 1U << 9,
        kUfrdy = 1U << 10,
        kTs = 1U << 26,
        kClronrets = 1U << 27,
        kClronret = 1U << 28,
        kLspens = 1U << 29,
        kLspen = 1U << 30,
        kAspen = 1U << 31,
    };

    u32 vtor = 0;
    u32 aircr = 0;  ///< writable flags, without key and PRIGROUP
    u32 scr = 0;
    u32 ccr = 0;
    u32 shcsr_enables = 0;  ///< bits 16 to 19
    u32 cfsr = 0;
    u32 hfsr = 0;
    u32 dfsr = 0;
    u32 mmfar = 0;
    u32 bfar = 0;
    u32 cpacr = 0;
    u32 fpccr = 0;
    u32 fpcar = 0;
    u32 fpdscr = 0;
    u32 demcr = 0;
    u32 actlr = 0;
    u32 sfsr = 0;
    u32 reset_vtor = 0;

    /// CP10 accessible now.
    [[nodiscard]] bool fp_enabled(bool privileged) const;
    /// DWT.CYCCNT at the machine's time.
    [[nodiscard]] u32 cycle_counter() const;

  private:
    [[nodiscard]] u32 read_word(u32 offset);
    void write_word(u32 offset, u32 value, u32 mask);
    [[nodiscard]] u32 read_nvic(u32 offset) const;
    void write_nvic(u32 offset, u32 value, u32 mask);
    [[nodiscard]] u32 read_mpu(u32 offset) const;
    void write_mpu(u32 offset, u32 value);
    [[nodiscard]] u32 read_shcsr() const;
    void write_shcsr(u32 value);
    [[nodiscard]] u32 read_icsr() const;
    void write_icsr(u32 value);
    void write_aircr(u32 value);
    [[nodiscard]] u32 read_dwt(u32 offset) const;
    void write_dwt(u32 offset, u32 value);

    Machine& machine_;
    u32 dwt_control_ = 0;
    u64 cycle_base_ = 0;     ///< machine cycles at which the counter was zero, while it runs
    u32 cycle_stopped_ = 0;  ///< its value while it does not
    std::array<u32, 0x20> sau_{};
};

}  // namespace talpa::board::cpu
