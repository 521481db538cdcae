// Time: a millisecond tick (SysTick) and a cycle counter (DWT).
#pragma once

#include <cstdint>

namespace talpa::firmware {

/// Core clock that the vendor's SDK sets; times derived from cycles rest on it. (imx93-remoteproc, section 1.5)
inline constexpr std::uint32_t kCoreHz = 200'000'000;

void clock_start();
/// Milliseconds since clock_start.
[[nodiscard]] std::uint32_t clock_ms();
/// Core cycles, modulo 2^32 (21 s).
[[nodiscard]] std::uint32_t clock_cycles();

}  // namespace talpa::firmware
