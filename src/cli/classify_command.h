// talpa classify: pictures on the board's NPU, by /dev/mem and the RPMsg tty only.
#pragma once

#include <string>
#include <vector>

#include "base/host/error.h"
#include "cli/picture_options.h"
#include "link/host/board_access.h"

namespace talpa::cli {

struct ClassifyOptions {
    std::vector<std::string> images;
    std::string program;
    std::string labels;
    std::int64_t label_offset = 0;
    std::size_t top = 5;
    double timeout_s = 10;
    std::string root, memory, tty, remoteproc = "imx-rproc";
    std::string output_dir;
    bool json = false;
    PictureOptions picture;
};

[[nodiscard]] host::Result<void> check(const ClassifyOptions& options);
[[nodiscard]] host::Result<void> classify_on_board(const ClassifyOptions& options);

}  // namespace talpa::cli
