// Files from the network by the system's curl (its proxies and certificates, as the user set them), and file:// URLs.
#pragma once

#include <string>

#include "topo/system/process.h"

namespace talpa::topo {

/// http, https and file. Errors name the URL: unsupported scheme, no curl, the transfer failed, larger than the limit.
[[nodiscard]] host::Result<std::string> download(const std::string& url, Milliseconds timeout,
                                                 std::size_t limit_bytes = 64 << 20);

}  // namespace talpa::topo
