// The nodes of /reserved-memory that the device tree of an i.MX 93 must have before the M33 can talk to Linux and the
// NPU can work: what the board shows, what `topo doctor --fix` adds. Ranges are those of the memory map, as the system
// bus has them. (imx93-remoteproc, section 2.4; topo, section 11.4)
#pragma once

#include <array>

#include "link/memory_map.h"

namespace talpa::link {

struct ReservedMemoryNode {
    const char* name;
    std::uint32_t base, size;
    bool shared_pool;  ///< compatible = "shared-dma-pool"
};

inline constexpr ReservedMemoryNode kModelNode{"model@c0000000", kModelRegion.base, kModelRegion.size, false};
inline constexpr ReservedMemoryNode kEthosuNode{"ethosu_region@A8000000", kEthosuRegion.base, kEthosuRegion.size, true};

inline constexpr ReservedMemoryNode kVdevBufferNode{"vdevbuffer@a4020000", kVringBuffers.base, kVringBuffers.size,
                                                    true};
inline constexpr ReservedMemoryNode kVdev0Vring0Node{"vdev0vring0@a4000000", kVring0.base, kVring0.size, false};
inline constexpr ReservedMemoryNode kVdev0Vring1Node{"vdev0vring1@a4008000", kVring1.base, kVring1.size, false};
/// Of a second virtio device, which our firmware does not have and the driver's node names all the same.
inline constexpr ReservedMemoryNode kVdev1Vring0Node{"vdev1vring0@a4010000", 0xA4010000, 0x8000, false};
inline constexpr ReservedMemoryNode kVdev1Vring1Node{"vdev1vring1@a4018000", 0xA4018000, 0x8000, false};
inline constexpr ReservedMemoryNode kResourceTableNode{
    "rsc-table@2021e000", kLiveResourceTable.base - kDtcm.base + kDtcmSystem, 0x1000, false};

/// What `memory-region` of the M33's node lists, in this order.
inline constexpr std::array kRemoteprocNodes{kVdevBufferNode,  kVdev0Vring0Node, kVdev0Vring1Node,
                                             kVdev1Vring0Node, kVdev1Vring1Node, kResourceTableNode};

namespace detail {
template <std::size_t N>
consteval bool names_say_bases(const std::array<ReservedMemoryNode, N>& nodes) {
    for (const ReservedMemoryNode& node : nodes) {
        const std::string_view name = node.name;
        std::uint32_t said = 0;
        for (const char c : name.substr(name.find('@') + 1))
            said = said << 4 | static_cast<std::uint32_t>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
        if (said != node.base) return false;
    }
    return true;
}
}  // namespace detail

static_assert(detail::names_say_bases(kRemoteprocNodes) &&
              detail::names_say_bases(std::array{kModelNode, kEthosuNode}));

}  // namespace talpa::link
