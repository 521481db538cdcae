// The shim's own log: the FIFO `log` in its folder, which containerd copies to its log. Never blocks; without a reader
// the line is dropped.
#pragma once

#include <string_view>

namespace talpa::remoteproc::shim {

/// `debug`: lines of shim_debug are written too.
void set_shim_log(bool debug);
void shim_log(std::string_view line);
void shim_debug(std::string_view line);

}  // namespace talpa::remoteproc::shim
