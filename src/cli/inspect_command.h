// talpa inspect: what is in a program, as text, JSON or HTML.
#pragma once

#include <string>
#include <vector>

#include "base/host/error.h"

namespace talpa::cli {

struct InspectOptions {
    std::string program;
    std::vector<std::string> data;  ///< .ptd files
    std::string html;               ///< where to write the report; empty: none
    bool ops = false;
    bool json = false;
};

[[nodiscard]] host::Result<void> inspect_program(const InspectOptions& options);

}  // namespace talpa::cli
