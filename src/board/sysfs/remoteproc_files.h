// Where the board's kernel shows a remote processor: its sysfs class, its debugfs folder, the buses of its virtio
// device and channels. (imx93-remoteproc, section 7)
#pragma once

#include <vector>

#include "board/linux/remoteproc.h"
#include "board/sysfs/file_tree.h"

namespace talpa::board {

/// Adds class/remoteproc/remoteproc`index` and kernel/debug/remoteproc/remoteproc`index`. The processor must outlive
/// whoever serves the tree.
void add_remoteproc_files(FileTree& tree, unsigned index, Remoteproc& processor);

/// Adds bus/rpmsg/devices and bus/virtio/devices of all processors, by their index.
void add_bus_files(FileTree& tree, std::vector<const Remoteproc*> processors);

}  // namespace talpa::board
