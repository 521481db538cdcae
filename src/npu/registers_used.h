// Which registers an operation samples, and the value that each of them has for it: one table for the encoder (what to
// write), the strict checks (what must have been written) and the documentation. Freestanding. (ethos-u65, sections 3.2
// to 3.4)
#pragma once

#include <cstdint>
#include <span>

#include "npu/commands.h"
#include "npu/operation.h"

namespace talpa::npu {

/// What an operation must have for a register to matter. Bits of a set.
namespace use {
inline constexpr std::uint16_t kBlock = 1;   ///< every block operation
inline constexpr std::uint16_t kWindow = 2;  ///< convolution, depthwise, pooling
inline constexpr std::uint16_t kElementwise = 4;
inline constexpr std::uint16_t kTwoOperands = 8;    ///< elementwise with IFM2, in memory or scalar
inline constexpr std::uint16_t kSecondMap = 16;     ///< IFM2 in memory
inline constexpr std::uint16_t kScalar = 32;        ///< IFM2 is the scalar register
inline constexpr std::uint16_t kWeights = 64;       ///< convolution, depthwise
inline constexpr std::uint16_t kRecords = 128;      ///< … with scale records per channel
inline constexpr std::uint16_t kSecondCore = 256;   ///< … on two cores
inline constexpr std::uint16_t kGlobalScale = 512;  ///< OFM_SCALE applies
inline constexpr std::uint16_t kDma = 1024;
inline constexpr std::uint16_t kDma2d = 2048;         ///< … with rows
inline constexpr std::uint16_t kDma3d = 4096;         ///< … with planes
inline constexpr std::uint16_t kOperandScale = 8192;  ///< ADD, SUB
}  // namespace use

/// The set of uses of one operation.
[[nodiscard]] std::uint16_t uses_of(const Operation& op);

struct UsedCmd0 {
    Cmd0 code;
    std::uint16_t uses;  ///< all of them must hold
    std::uint16_t (*value)(const Operation&);
};
struct UsedCmd1 {
    Cmd1 code;
    std::uint16_t uses;
    std::uint64_t (*value)(const Operation&);  ///< parameter in bits 47:32, payload in 31:0
};

/// Every register of the set once, in the order in which they are numbered.
[[nodiscard]] std::span<const UsedCmd0> used_cmd0();
[[nodiscard]] std::span<const UsedCmd1> used_cmd1();

/// The operation's own command word.
[[nodiscard]] std::uint32_t operation_word(const Operation& op);

}  // namespace talpa::npu
