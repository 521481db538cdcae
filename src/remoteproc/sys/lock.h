// An advisory lock on a file (flock): gone with its holder, however that ends.
#pragma once

#include <string>

#include "remoteproc/sys/os_error.h"

namespace talpa::remoteproc {

class FileLock {
  public:
    /// Creates the file if need be (mode 0600, never through a symbolic link) and waits for the lock at most
    /// `timeout_ms`. Error Timeout when somebody holds it that long.
    [[nodiscard]] static Result<FileLock> take(const std::string& path, int timeout_ms);
    [[nodiscard]] int fd() const { return fd_.get(); }

  private:
    explicit FileLock(Fd fd) : fd_(std::move(fd)) {}
    Fd fd_;
};

}  // namespace talpa::remoteproc
