// What the cycle model knows of a chip: the NPU's arithmetic rates, the two memories behind its AXI ports, and which
// region of a program lies in which memory (ethos-u65, sections 1, 8.3 and 8.4). Tables of published values, nothing
// measured.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "npu/hardware.h"
#include "npu/operation.h"

namespace talpa::npu_model {

/// The two sides that the NPU has ports to: AXI0 (on-chip SRAM) and AXI1 (DRAM, or flash in embedded systems).
enum class MemoryArea : std::uint8_t { Sram, Dram };
inline constexpr std::size_t kMemoryAreas = 2;
[[nodiscard]] constexpr std::size_t index(MemoryArea area) {
    return static_cast<std::size_t>(area);
}
/// "SRAM", "DRAM"
[[nodiscard]] const char* memory_area_name(MemoryArea area);

/// One memory as seen from an AXI port. Cycles are NPU cycles.
struct MemoryTiming {
    double bytes_per_cycle = 16;
    std::uint32_t burst_bytes = 32;  ///< a shorter run of bytes costs as much as this
    std::uint32_t read_latency = 32, write_latency = 32;
    std::uint32_t max_reads = 16, max_writes = 16;  ///< bursts that may be outstanding

    /// What latency leaves of the bandwidth: outstanding bursts per latency (section 8.7).
    [[nodiscard]] double sustained_read() const;
};

/// One NPU configuration: its hardware, and how fast its output unit is, in cycles per element.
struct NpuConfig {
    const npu::Hardware* hardware = &npu::kU65_256;
    std::uint32_t axi_bytes = 16;  ///< bytes a cycle of one port: 16 on the U65, 8 on the U55

    struct OutputRates {
        double unary32, binary32, mul32, mul_or_acc40, add_simple, add_advanced, max_pool, other;
    } output{};
    struct ActivationRates {
        double lut, clamp, none;
    } activation{};
};

/// A published "system configuration": clock and memories.
struct SystemProfile {
    std::string_view name;  ///< "Ethos_U65_High_End"
    double clock_hz = 1e9;
    double sram_scale = 1.0, dram_scale = 1.0;  ///< share of a port's full width
    std::uint32_t sram_outstanding = 16;
    std::uint32_t dram_read_latency = 500, dram_write_latency = 250;
    std::uint32_t dram_max_reads = 24, dram_max_writes = 12;
};

/// A published "memory mode": where constants, arena and cache are.
struct MemoryMode {
    std::string_view name;  ///< "Dedicated_Sram"
    MemoryArea constants = MemoryArea::Dram, arena = MemoryArea::Dram, cache = MemoryArea::Sram;
};

/// Everything an estimate depends on beside the operation.
struct SystemConfig {
    NpuConfig npu;
    std::string_view profile, mode;
    double clock_hz = 1e9;
    std::array<MemoryTiming, kMemoryAreas> memory{};
    std::array<MemoryArea, npu::kRegionCount> region_area{};  ///< 0 constants, 1 arena, 2 cache, 3.. inputs and outputs

    [[nodiscard]] const MemoryTiming& timing(MemoryArea area) const { return memory[index(area)]; }
    [[nodiscard]] MemoryArea area_of(std::uint8_t region) const { return region_area[region & 7]; }
    [[nodiscard]] double seconds(std::uint64_t cycles) const { return static_cast<double>(cycles) / clock_hz; }
};

[[nodiscard]] std::span<const SystemProfile> system_profiles();

/// By names; nothing if one of them is in no table. Names are compared without regard to case, a profile also without
/// its "Ethos_U65_" prefix ("High_End"), a mode also with a limit behind it ("Dedicated_Sram_384KB").
[[nodiscard]] std::optional<SystemConfig> system_config(std::string_view npu, std::string_view profile,
                                                        std::string_view mode);

/// The i.MX 93 as compilers are told it: U65-256, High_End, Dedicated_Sram.
[[nodiscard]] const SystemConfig& default_system_config();

/// The configuration that a program's CONFIG word (ethos-u65, section 2.2) names, or nothing.
[[nodiscard]] const NpuConfig* npu_config_of(std::uint32_t config_word);

}  // namespace talpa::npu_model
