// What a program is compiled for: the NPU, the memories behind it and how much of the fast one there is. (ethos-u65,
// sections 8.4 and 10.1)
#pragma once

#include <cstdint>
#include <string>

#include "base/host/error.h"
#include "npu/hardware.h"
#include "npu_model/cycles/system_config.h"

namespace talpa::compiler {

enum class MemoryMode : std::uint8_t {
    SramOnly,       ///< everything in SRAM
    SharedSram,     ///< constants in DRAM or flash, the arena in SRAM
    DedicatedSram,  ///< constants and arena in DRAM, a cache in SRAM
};
/// Size: the memory that a run takes, in at most twice the time of the fastest plan that is found.
enum class Optimize : std::uint8_t { Speed, Size };

struct Target {
    std::string npu = "ethos-u65-256";
    std::string system = "Ethos_U65_High_End";
    MemoryMode mode = MemoryMode::DedicatedSram;
    std::uint64_t sram_bytes = 384 << 10;  ///< hard limit; kUnlimited for none
    Optimize optimize = Optimize::Speed;

    const npu::Hardware* hardware = &npu::kU65_256;
    npu_model::SystemConfig config = npu_model::default_system_config();

    /// Region of internal feature maps and buffers that live in SRAM.
    [[nodiscard]] std::uint8_t fast_region() const { return mode == MemoryMode::DedicatedSram ? 2 : 1; }
    [[nodiscard]] bool constants_in_dram() const { return mode != MemoryMode::SramOnly; }
};
inline constexpr std::uint64_t kUnlimited = std::uint64_t{1} << 40;

[[nodiscard]] const char* memory_mode_name(MemoryMode mode);

/// By names, as on a command line: "ethos-u65-256", "Ethos_U65_High_End", a mode. Errors name what there is.
[[nodiscard]] host::Result<Target> make_target(const std::string& npu, const std::string& system, MemoryMode mode,
                                               std::uint64_t sram_bytes);

}  // namespace talpa::compiler
