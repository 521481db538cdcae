// The facts for a person at a terminal.
#pragma once

#include <string>

#include "inspect/report.h"

namespace talpa::inspect {

struct TextOptions {
    bool colours = false;     ///< only for a terminal
    bool operations = false;  ///< list every NPU operation
    std::size_t width = 100;  ///< columns; at least 60
};

/// Ends with a line feed. Names out of the file are made printable.
[[nodiscard]] std::string report_text(const Report& report, const TextOptions& options = {});

}  // namespace talpa::inspect
