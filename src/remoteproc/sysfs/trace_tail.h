// What is new in a firmware's trace buffer. The kernel only shows the buffer's text up to its first NUL; firmware
// appends to it, drops its older part, or writes round in a ring.
#pragma once

#include <string>
#include <string_view>

namespace talpa::remoteproc {

class TraceTail {
  public:
    /// The text that came since the snapshot before; the first time all of it.
    [[nodiscard]] std::string update(std::string snapshot);

  private:
    std::string before_;
};

}  // namespace talpa::remoteproc
