// Where the board's kernel shows a remote processor: its sysfs class, its debugfs folder, the buses of its virtio
// device and channels. (imx93-remoteproc, section 7)
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "board/linux/remoteproc.h"
#include "board/sysfs/file_tree.h"

namespace talpa::board {

/// The number of the tty of a device on the rpmsg bus; -1: it has none.
using TtyOf = std::function<int(std::string_view device)>;

/// Adds class/remoteproc/remoteproc`index`, with the devices of its channels while it is up, and
/// kernel/debug/remoteproc/remoteproc`index`. The processor must outlive whoever serves the tree.
void add_remoteproc_files(FileTree& tree, unsigned index, Remoteproc& processor, TtyOf tty_of);

/// Core files of crashes as devcoredump shows them: class/devcoredump/devcdN/data, until somebody writes to it or five
/// minutes have passed.
class CoreDumps {
  public:
    void add(std::string core);
    [[nodiscard]] NodeMap files();

  private:
    struct Dump {
        std::shared_ptr<const std::string> core;
        std::chrono::steady_clock::time_point born;
    };
    std::mutex mutex_;
    std::map<unsigned, Dump> dumps_;
    unsigned next_ = 1;
};

/// Adds bus/rpmsg/devices and bus/virtio/devices of all processors, by their index: links to what
/// add_remoteproc_files has added.
void add_bus_files(FileTree& tree, std::vector<const Remoteproc*> processors);

}  // namespace talpa::board
