// What remoteproc makes of a firmware's resource table: rings checked against the reserved nodes, notify ids given,
// trace buffers found. (imx93-remoteproc, section 2.3)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/core/byte_reader.h"
#include "board/linux/address_map.h"
#include "board/linux/kernel_log.h"
#include "link/reserved_memory.h"

namespace talpa::board {

/// A node under /reserved-memory that remoteproc registered as a carveout by its name ("vdev0vring0").
struct ReservedNode {
    std::string name;
    std::uint32_t base = 0;
    std::uint32_t size = 0;
};
/// As the driver names it: what stands before the '@'.
[[nodiscard]] inline ReservedNode carveout(const link::ReservedMemoryNode& node) {
    const std::string_view name = node.name;
    return {std::string(name.substr(0, name.find('@'))), node.base, node.size};
}

struct TraceEntry {
    std::string name;
    std::uint32_t da = 0;
    std::uint32_t length = 0;
};

struct VringEntry {
    std::uint32_t table_offset = 0;  ///< of the vring in the table
    std::uint32_t da = 0;            ///< after "any" was resolved
    std::uint32_t align = 0, num = 0;
    std::uint32_t notify_id = 0;
};

struct VdevEntry {
    std::uint32_t table_offset = 0;  ///< of the entry in the table
    std::uint32_t id = 0;
    std::uint32_t features = 0;
    std::vector<VringEntry> vrings;
};

struct Resources {
    std::vector<TraceEntry> traces;
    std::vector<VdevEntry> vdevs;
};

/// Handles every entry and writes notify ids (and addresses that were left open) into `table`, Linux's own copy.
/// Returns the resources or a negative errno as the boot then fails with it; the log has the kernel's words, in the
/// name of remoteproc`index`.
struct ResourcesOrErrno {
    Resources resources;
    int error = 0;
};
[[nodiscard]] ResourcesOrErrno handle_resources(std::vector<std::uint8_t>& table,
                                                const std::vector<ReservedNode>& nodes, KernelLog& log,
                                                unsigned index = 0);

/// The text of debugfs' resource_table for a table, as Linux prints it.
[[nodiscard]] std::string describe_resource_table(Bytes table);

}  // namespace talpa::board
