// The server's options: a flag each, and an environment variable for use in containers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/host/json.h"

namespace talpa::webapp {

struct Options {
    std::string listen = "0.0.0.0:3000";
    std::vector<std::string> programs;
    std::string labels;
    std::int64_t label_offset = 0;
    std::string samples;  ///< folder of pictures to pick from, beside the built-in ones
    std::string root, memory = "/dev/mem", tty, remoteproc = "imx-rproc", device_tree, ethosu = "/dev/ethosu0";
    std::string remoteproc_class = "/sys/class/remoteproc", debug_class = "/sys/kernel/debug/remoteproc";
    double timeout_s = 10;
    std::size_t queue = 64, top = 5, uploads = 4;
    double upload_limit_mib = 16, pixel_limit_mp = 50;
    std::string token;
    std::vector<std::string> allow_hosts;
    bool sandbox = true;
    std::uint32_t user = 65534, group = 65534;

    [[nodiscard]] host::Json json() const;  ///< as shown at /api/status, the token left out
};

/// Reads the command line and the environment. A number: the exit status to end with (help, version, wrong usage).
[[nodiscard]] std::optional<int> parse_options(int argc, const char* const* argv, Options& options);

/// "0.0.0.0:3000", "[::]:3000", ":3000", "3000": address and port; nothing when malformed.
[[nodiscard]] std::optional<std::pair<std::string, std::uint16_t>> parse_listen(const std::string& text);

}  // namespace talpa::webapp
