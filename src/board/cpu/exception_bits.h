// Bits that exceptions and the special registers share: CONTROL, EXC_RETURN and xPSR (manual B3, D1.2).
#pragma once

#include "board/cpu/types.h"

namespace talpa::board::cpu {

// CONTROL
inline constexpr u32 kUnprivilegedThread = 1;
inline constexpr u32 kProcessStack = 2;
inline constexpr u32 kFpActive = 4;
inline constexpr u32 kSecureFpActive = 8;

// EXC_RETURN with everything Secure and the default stacking rules; FType, Mode and SPSEL come on top.
inline constexpr u32 kReturnBase = 0xFFFFFFE1;
inline constexpr u32 kNoFpFrame = 1U << 4;
inline constexpr u32 kToThread = 1U << 3;
inline constexpr u32 kToProcessStack = 1U << 2;

// xPSR; the last two only as it lies in a frame
inline constexpr u32 kThumbBit = 1U << 24;
inline constexpr u32 kRealigned = 1U << 9;
inline constexpr u32 kStackedSfpa = 1U << 20;

}  // namespace talpa::board::cpu
