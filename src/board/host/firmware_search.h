// Where Linux looks for a firmware file: the folder of firmware_class.path first, then the folders below /lib/firmware.
// (imx93-remoteproc, section 7.1)
#pragma once

#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>

#include "board/linux/remoteproc.h"

namespace talpa::board {

class FirmwareSearch {
  public:
    /// `root` is the board's "/". `keep_newline`: kernels before 6.4 take a newline in the path for part of it.
    FirmwareSearch(std::filesystem::path root, bool keep_newline)
        : root_(std::move(root)), keep_newline_(keep_newline) {}

    /// The file `name`, or -ENOENT, -EINVAL ("..", empty), -ENAMETOOLONG, -EFBIG, -EIO. Any thread.
    [[nodiscard]] FirmwareFile find(const std::string& name) const;

    // /sys/module/firmware_class/parameters/path
    [[nodiscard]] std::string read_path() const;
    [[nodiscard]] int write_path(std::string_view text);

  private:
    std::filesystem::path root_;
    bool keep_newline_;
    mutable std::mutex mutex_;
    std::string path_;
};

}  // namespace talpa::board
