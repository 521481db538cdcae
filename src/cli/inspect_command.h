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

/// Errors of usage: a file that would be written over one that is read.
[[nodiscard]] host::Result<void> check(const InspectOptions& options);
/// The exit status: 2, with nothing written, where the program's NPU has no such system or memory mode.
[[nodiscard]] host::Result<int> inspect_program(const InspectOptions& options);

}  // namespace talpa::cli
