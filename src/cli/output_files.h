// What a command writes must not be what it reads: a program is gone when its report takes its place.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/host/error.h"

namespace talpa::cli {

/// A file that an option names; with an empty path the option was not given.
struct NamedFile {
    std::string option;  ///< "--html", as messages show it
    std::filesystem::path path;
};

/// InvalidArgument when an output is one of the inputs or another output: the same file by whatever name, or the same
/// place where there is none yet; and when it is "-".
[[nodiscard]] host::Result<void> check_outputs(const std::vector<NamedFile>& outputs,
                                               const std::vector<NamedFile>& inputs);

}  // namespace talpa::cli
