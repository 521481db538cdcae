// The memory that an executor works in. All of it belongs to the caller; how much each pool needs is known from the
// file alone, to the byte, before anything runs. (pte-format, sections 4 and 7.5; V14, V15, V34)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace talpa::runtime {

inline constexpr std::size_t kPoolAlignment = 16;
inline constexpr std::size_t kMaxArenas = 8;

/// Exact bytes of each pool; every one is a multiple of 16 and the same on a host and on the M33.
struct MemoryNeed {
    std::size_t method = 0;                         ///< the executor's own tables: values, tensors, delegates
    std::array<std::size_t, kMaxArenas> planned{};  ///< arenas of planned tensors; [0] is memory id 1
    std::uint32_t arena_count = 0;
    std::size_t temporary = 0;     ///< scratch of CPU operators, the largest call
    std::size_t scratch = 0;       ///< region 1 of the NPU, the largest delegate
    std::size_t fast_scratch = 0;  ///< region 2 of the NPU (Dedicated_Sram modes), the largest delegate

    [[nodiscard]] std::size_t planned_total() const {
        std::size_t sum = 0;
        for (std::size_t i = 0; i < arena_count; ++i) sum += planned[i];
        return sum;
    }
};

using Pool = std::span<std::uint8_t>;

/// The pools but the method's, which `Method::load` takes. Each begins at a multiple of 16; a pool that is not needed
/// may be empty. The NPU reaches scratch and fast scratch; the others are the CPU's alone.
struct Pools {
    std::span<const Pool> planned;  ///< one an arena
    Pool temporary;
    Pool scratch;
    Pool fast_scratch;
};

[[nodiscard]] constexpr std::size_t round_up_to_pool(std::size_t bytes) {
    return (bytes + kPoolAlignment - 1) & ~(kPoolAlignment - 1);
}

// The C library is the firmware's own: there its memcpy and memset keep to aligned words, as Device memory demands.
inline void copy_bytes(std::uint8_t* to, const std::uint8_t* from, std::size_t n) {
    if (n != 0) __builtin_memmove(to, from, n);
}
inline void zero_bytes(std::uint8_t* to, std::size_t n) {
    if (n != 0) __builtin_memset(to, 0, n);
}

}  // namespace talpa::runtime
