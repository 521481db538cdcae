// Runs one of the system's programs, without a shell.
#pragma once

#include <string>
#include <vector>

#include "base/host/error.h"

namespace talpa::compiler::models {

/// Its standard output. Errors: NotFound when there is no such program; AccessFailed with what it wrote to standard
/// error.
[[nodiscard]] host::Result<std::string> run_program(const std::vector<std::string>& arguments);

}  // namespace talpa::compiler::models
