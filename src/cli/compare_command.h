// talpa compare: two programs, or one and recorded outputs.
#pragma once

#include <string>
#include <vector>

#include "base/host/error.h"

namespace talpa::cli {

struct CompareOptions {
    std::string program;
    std::vector<std::string> inputs;
    std::string against;  ///< a folder or a program; empty: the program's folder
    std::string method = "forward";
    std::vector<std::string> data;
};

/// Options that cannot be: an error for status 2.
[[nodiscard]] host::Result<void> check(const CompareOptions& options);
/// Prints what differs; kExitSuccess when nothing does, kExitFailed when something does.
[[nodiscard]] host::Result<int> compare_programs(const CompareOptions& options);

}  // namespace talpa::cli
