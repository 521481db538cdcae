// What Linux shows of the device tree, as far as a client of the M33 needs it: which memory the kernel leaves alone.
// What is staged elsewhere may lie over the kernel's own. (imx93-remoteproc, section 9)
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/core/byte_reader.h"
#include "link/host/board_access.h"
#include "link/memory_map.h"

namespace talpa::link::host {

/// A range of a child of /reserved-memory.
struct ReservedNode {
    std::string name;  ///< "model@c0000000"
    std::uint64_t base = 0, size = 0;
    bool no_map = false, reusable = false;
};

/// The tree as its readers name it: "/sys/firmware/devicetree/base", else "/proc/device-tree"; empty: none can be read.
[[nodiscard]] std::string device_tree_of(const BoardPaths& paths);

/// A property's bytes (64 KiB at most); nothing if it cannot be read.
[[nodiscard]] std::optional<std::vector<std::uint8_t>> device_tree_property(const std::filesystem::path& path);

/// The nodes of `tree`/reserved-memory by address, 256 at most.
[[nodiscard]] std::vector<ReservedNode> reserved_nodes(const std::filesystem::path& tree);

/// The node that covers the range whatever its name, one without a mapping before others; null: none.
[[nodiscard]] const ReservedNode* covering_node(const std::vector<ReservedNode>& nodes, const MemoryRange& range);

/// Those of the runner's ranges (model and NPU) that a readable tree does not reserve; empty where there is no tree.
[[nodiscard]] std::vector<MemoryRange> unreserved_ranges(const BoardPaths& paths);

/// The ranges of one `reg` property with the cells of its parent; empty when the length does not fit.
[[nodiscard]] std::vector<std::pair<std::uint64_t, std::uint64_t>> reg_ranges(Bytes reg, unsigned address_cells,
                                                                              unsigned size_cells);

}  // namespace talpa::link::host
