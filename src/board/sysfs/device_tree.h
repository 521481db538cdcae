// The board's device tree, as data: what /sys/firmware/devicetree/base shows and what the boot loader handed over as a
// blob. Only the nodes that users and tools of this project look at. (imx93-remoteproc, sections 2.4 and 7.4)
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "board/sysfs/file_tree.h"

namespace talpa::board {

struct DeviceTreeNode {
    std::string name;                                             ///< with its unit address, as in the source
    std::vector<std::pair<std::string, std::string>> properties;  ///< raw bytes, big-endian where numbers
    std::vector<DeviceTreeNode> children;
};

/// What the documented patch of the vendor's tree adds; all of it is there by default.
struct DeviceTreeOptions {
    bool model_region = true;       ///< reserved-memory/model@c0000000
    bool ethosu_no_map = true;      ///< ethosu_region is `no-map`, not the vendor's `reusable`
    bool cm33_power_domain = true;  ///< power-domains of remoteproc-cm33
    bool iomem_relaxed = true;      ///< in bootargs
    bool mcore_booted = true;       ///< clk-imx93.mcore_booted in bootargs
    bool ethosu = true;             ///< the node that the NPU's driver binds to is enabled
    unsigned startup_delay_ms = 500;
};

[[nodiscard]] DeviceTreeNode imx93_device_tree(const DeviceTreeOptions& options);

/// As folders and files; the kernel adds a `name` to each node.
[[nodiscard]] Node device_tree_files(const DeviceTreeNode& root);

/// As a flattened device tree, version 17 of the format.
[[nodiscard]] std::string flatten(const DeviceTreeNode& root);

}  // namespace talpa::board
