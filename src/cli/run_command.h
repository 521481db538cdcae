// talpa run: a program on inputs or pictures, on the functional model of the NPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/host/error.h"
#include "cli/picture_options.h"

namespace talpa::cli {

struct RunOptions {
    std::string program;
    std::vector<std::string> inputs;  ///< one file an input, in the program's own types
    std::vector<std::string> images;  ///< each is a run of its own
    std::string labels;
    std::int64_t label_offset = 0;
    std::size_t top = 5;
    std::string output_dir;
    std::string method = "forward";
    std::vector<std::string> data;  ///< .ptd files
    std::size_t repeat = 1;
    unsigned threads = 0;  ///< 0: as many as there are processors
    bool strict = false;
    bool json = false;
    PictureOptions picture;
};

/// Runs and prints. What is wrong with the options themselves is told apart (see `check`).
[[nodiscard]] host::Result<void> run(const RunOptions& options);
/// Options that cannot be meant together: an error for status 2.
[[nodiscard]] host::Result<void> check(const RunOptions& options);

}  // namespace talpa::cli
