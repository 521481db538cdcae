// Registers of the Cortex-M33 and of the i.MX 93's Messaging Unit that the firmware uses, by the manuals' names.
// (Armv8-M architecture; imx93-remoteproc, sections 1, 3 and 12.4)
#pragma once

#include <cstdint>

namespace talpa::firmware {

/// A 32-bit register at a fixed address.
inline volatile std::uint32_t& reg32(std::uintptr_t address) {
    return *reinterpret_cast<volatile std::uint32_t*>(address);
}

namespace scs {
inline constexpr std::uintptr_t kSystCsr = 0xE000E010, kSystRvr = 0xE000E014, kSystCvr = 0xE000E018;
inline constexpr std::uintptr_t kNvicIser = 0xE000E100, kNvicIcer = 0xE000E180, kNvicIcpr = 0xE000E280,
                                kNvicIpr = 0xE000E400;
inline constexpr std::uintptr_t kVtor = 0xE000ED08, kShpr3 = 0xE000ED20, kShcsr = 0xE000ED24;
inline constexpr std::uintptr_t kCfsr = 0xE000ED28, kHfsr = 0xE000ED2C, kMmfar = 0xE000ED34, kBfar = 0xE000ED38;
inline constexpr std::uintptr_t kMpuCtrl = 0xE000ED94, kMpuRnr = 0xE000ED98, kMpuRbar = 0xE000ED9C,
                                kMpuRlar = 0xE000EDA0, kMpuMair0 = 0xE000EDC0;
inline constexpr std::uintptr_t kDemcr = 0xE000EDFC, kDwtCtrl = 0xE0001000, kDwtCyccnt = 0xE0001004;

inline constexpr std::uint32_t kShcsrFaultEnables =
    (1u << 16) | (1u << 17) | (1u << 18);  // MemManage, BusFault, UsageFault
inline constexpr std::uint32_t kDemcrTrcena = 1u << 24;
}  // namespace scs

/// The Messaging Unit's registers, as offsets.
namespace mu {
inline constexpr std::uintptr_t kGier = 0x110, kGsr = 0x118, kTcr = 0x120, kTsr = 0x124, kRcr = 0x128, kRsr = 0x12C;
inline constexpr std::uintptr_t kTr = 0x200, kRr = 0x280;
/// Linux and the M33 talk over transmit and receive register 1 only.
inline constexpr unsigned kChannel = 1;
}  // namespace mu

inline void dsb() {
    __asm volatile("dsb" ::: "memory");
}
inline void isb() {
    __asm volatile("isb" ::: "memory");
}
inline void wfe() {
    __asm volatile("wfe" ::: "memory");
}

/// Interrupts off for the length of a scope; nests.
class CriticalSection {
  public:
    CriticalSection() { __asm volatile("mrs %0, primask\n cpsid i" : "=r"(primask_)::"memory"); }
    ~CriticalSection() { __asm volatile("msr primask, %0" ::"r"(primask_) : "memory"); }
    CriticalSection(const CriticalSection&) = delete;
    CriticalSection& operator=(const CriticalSection&) = delete;

  private:
    std::uint32_t primask_;
};

inline void enable_irq(unsigned irq, unsigned priority) {
    *reinterpret_cast<volatile std::uint8_t*>(scs::kNvicIpr + irq) = static_cast<std::uint8_t>(priority << 5);
    reg32(scs::kNvicIcpr + 4 * (irq / 32)) = 1u << (irq % 32);
    reg32(scs::kNvicIser + 4 * (irq / 32)) = 1u << (irq % 32);
}
inline void disable_irq(unsigned irq) {
    reg32(scs::kNvicIcer + 4 * (irq / 32)) = 1u << (irq % 32);
}

}  // namespace talpa::firmware
