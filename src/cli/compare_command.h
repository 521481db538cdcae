// talpa compare: two programs, one and recorded outputs, or a model and its program.
#pragma once

#include <string>
#include <vector>

#include "base/host/error.h"
#include "cli/compile_command.h"

namespace talpa::cli {

struct CompareOptions {
    std::string program;
    std::vector<std::string> inputs;
    std::string against;  ///< a folder or a program; empty: the program's folder
    std::string method = "forward";
    std::vector<std::string> data;
    // With a model in the program's place
    std::string compiled;  ///< the program that was made of it; empty: it is compiled in memory
    std::string image;
    double least_db = 10;
    bool all = false;
    CompileOptions compile;
};

/// Options that cannot be: an error for status 2.
[[nodiscard]] host::Result<void> check(const CompareOptions& options);
/// Prints what differs; kExitSuccess when nothing does, kExitFailed when something does.
[[nodiscard]] host::Result<int> compare_programs(const CompareOptions& options);

}  // namespace talpa::cli
