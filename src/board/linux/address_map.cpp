#include "board/linux/address_map.h"

#include <array>

namespace talpa::board {
namespace {

struct Window {
    std::uint64_t da;
    std::uint64_t system;
    std::uint64_t size;
    bool own;  ///< mapped by the driver itself; else only what a memory-region maps
};

constexpr Window kWindows[] = {
    {0x0FFC0000, 0x201C0000, 0x40000, true},     {0x1FFC0000, 0x201C0000, 0x40000, true},
    {0x20000000, 0x20200000, 0x40000, true},     {0x30000000, 0x20200000, 0x40000, true},
    {0x80000000, 0x80000000, 0x10000000, false}, {0x90000000, 0x80000000, 0x10000000, false},
    {0xC0000000, 0xC0000000, 0x10000000, false}, {0xD0000000, 0xC0000000, 0x10000000, false},
};

constexpr std::array<const char*, 4> kLines{
    "0ffc0000..0fffffff  code TCM (fitted: 0ffe0000..0fffffff, the last byte excluded)",
    "20000000..2003ffff  data TCM (fitted: 20000000..2001ffff)",
    "80000000..8fffffff, c0000000..cfffffff  DDR, only inside a memory-region of the remoteproc node",
    "1ffc0000, 30000000, 90000000, d0000000  the same, seen as secure",
};

}  // namespace

std::optional<std::uint32_t> device_to_system(std::uint64_t da, std::uint64_t length,
                                              std::span<const MappedBlock> blocks) {
    if (length == 0) return std::nullopt;
    for (const Window& w : kWindows) {
        if (da < w.da || da + length < da || da + length >= w.da + w.size) continue;
        const std::uint64_t system = da - w.da + w.system;
        if (w.own) return static_cast<std::uint32_t>(system);
        for (const MappedBlock& block : blocks)
            if (system >= block.system_address && system + length < std::uint64_t{block.system_address} + block.size)
                return static_cast<std::uint32_t>(system);
        return std::nullopt;
    }
    return std::nullopt;
}

std::span<const char* const> address_map_lines() {
    return kLines;
}

}  // namespace talpa::board
