// The resource table as Linux's remoteproc parses it, and the one that our firmware carries: a trace buffer and one
// RPMsg device with two rings. (imx93-remoteproc, section 2)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/core/byte_reader.h"
#include "link/memory_map.h"

namespace talpa::link {

enum class ResourceType : std::uint32_t { Carveout = 0, Devmem = 1, Trace = 2, Vdev = 3 };

inline constexpr std::uint32_t kVirtioIdRpmsg = 7;
inline constexpr std::uint32_t kAnyAddress = 0xFFFFFFFF;  ///< da: Linux chooses
inline constexpr std::uint32_t kRpmsgFeatureNameService = 1;

/// Bits of a virtio device's status byte.
inline constexpr std::uint8_t kVirtioAcknowledge = 1, kVirtioDriver = 2, kVirtioDriverOk = 4;

struct ResourceTableHeader {
    std::uint32_t version, count, reserved[2];
};
struct TraceResource {
    std::uint32_t type, da, len, reserved;
    std::array<char, 32> name;
};
struct VringResource {
    std::uint32_t da, align, num, notifyid, reserved;
};
struct VdevResource {
    std::uint32_t type, id, notifyid, dfeatures, gfeatures, config_len;
    std::uint8_t status, num_of_vrings, reserved[2];
};

inline constexpr std::uint32_t kVringAlign = 0x1000;
inline constexpr std::uint32_t kVringNum = 256;

/// Our firmware's table. The order of its members is the wire format.
struct FirmwareResourceTable {
    ResourceTableHeader header;
    std::uint32_t offset[2];
    TraceResource trace;
    VdevResource vdev;
    VringResource vring[2];  // plain arrays: the live table is read through volatile
};
static_assert(offsetof(FirmwareResourceTable, trace) == 0x18 && offsetof(FirmwareResourceTable, vdev) == 0x48);
static_assert(offsetof(FirmwareResourceTable, vring) == 0x64 && sizeof(FirmwareResourceTable) == 0x8C);
static_assert(sizeof(FirmwareResourceTable) <= kLiveResourceTable.size);

[[nodiscard]] consteval FirmwareResourceTable firmware_resource_table() {
    return {
        .header = {.version = 1, .count = 2, .reserved = {}},
        .offset = {offsetof(FirmwareResourceTable, trace), offsetof(FirmwareResourceTable, vdev)},
        .trace = {.type = static_cast<std::uint32_t>(ResourceType::Trace),
                  .da = kTraceBuffer.base,
                  .len = kTraceBuffer.size,
                  .reserved = 0,
                  .name = {'c', 'm', '3', '3', '_', 'l', 'o', 'g'}},
        .vdev = {.type = static_cast<std::uint32_t>(ResourceType::Vdev),
                 .id = kVirtioIdRpmsg,
                 .notifyid = 0,
                 .dfeatures = kRpmsgFeatureNameService,
                 .gfeatures = 0,
                 .config_len = 0,
                 .status = 0,
                 .num_of_vrings = 2,
                 .reserved = {}},
        .vring = {{kVring0.base, kVringAlign, kVringNum, 0, 0}, {kVring1.base, kVringAlign, kVringNum, 1, 0}},
    };
}

/// One entry of a foreign table.
struct ResourceEntry {
    std::uint32_t type;
    std::uint32_t offset;  ///< of the entry in the table
    Bytes bytes;           ///< from its type word to the end of the table; at least the fixed length of its type
};

/// Linux's checks of a table (sizes, version 1, reserved words 0, offsets, lengths of the known types). Errors use the
/// kernel's own phrases, since users search for them. Returns the number of entries.
[[nodiscard]] Result<std::uint32_t> check_resource_table(Bytes table);
/// Entry `index` of a checked table.
[[nodiscard]] Result<ResourceEntry> resource_entry(Bytes table, std::uint32_t index);

}  // namespace talpa::link
