// talpa inspect: what is in a program, as text, JSON or HTML.
#pragma once

#include <string>
#include <vector>

#include "base/host/error.h"

namespace talpa::cli {

struct InspectOptions {
    std::string program;
    std::vector<std::string> data;     ///< .ptd files
    std::string html;                  ///< where to write the report; empty: none
    std::string csv;                   ///< where to write the costs; empty: nowhere
    std::string debug_db;              ///< where the names of the model's nodes are
    std::string system, memory_mode;   ///< to estimate for; empty: the program's own
    std::vector<std::string> configs;  ///< Vela's .ini files
    bool ops = false;
    bool json = false;
};

[[nodiscard]] host::Result<void> inspect_program(const InspectOptions& options);

}  // namespace talpa::cli
