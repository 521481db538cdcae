// What the Cortex-M33's node of a device tree must have beside reserved memory for the NPU: the power domain, and the
// nodes of RPMsg (vrings, buffers, resource table, mailbox), which an EVK's tree lacks.
#pragma once

#include <vector>

#include "topo/target/device_tree.h"
#include "topo/target/device_tree_text.h"

namespace talpa::topo {

/// What must change; empty if nothing. What cannot be done here is a change without words. Errors: a node of the tree
/// lies where one of ours must be.
[[nodiscard]] host::Result<std::vector<TreeChange>> missing_for_rpmsg(const TreeText& tree);

/// A region of memory that /reserved-memory shall have lies on another one of the tree: the other's path.
[[nodiscard]] std::string overlapping_region(const TreeText& tree, const std::string& own_path, std::uint64_t address,
                                             std::uint64_t size);

}  // namespace talpa::topo
