// How Linux's i.MX 93 remoteproc driver turns the M33's addresses into system addresses, with its strict comparison: a
// range that ends exactly where a window ends is refused. (imx93-remoteproc, section 1.2)
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace talpa::board {

/// A block of system memory that the driver mapped at probe: nodes of `memory-region` whose names do not begin with
/// "vdev".
struct MappedBlock {
    std::uint32_t system_address;
    std::uint32_t size;
};

/// System address of [da, da + length) as the M33 calls it, or nothing ("Translation failed"). DDR translates only
/// inside one of `blocks`. A length of 0 never translates.
[[nodiscard]] std::optional<std::uint32_t> device_to_system(std::uint64_t da, std::uint64_t length,
                                                            std::span<const MappedBlock> blocks);

/// The windows as text, one a line, for messages that must show the map.
[[nodiscard]] std::span<const char* const> address_map_lines();

}  // namespace talpa::board
