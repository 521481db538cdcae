// The facts as one HTML file that opens offline: style, program and data are inside it. Sources: src/inspect/html/.
#pragma once

#include <string>

#include "inspect/report.h"

namespace talpa::inspect {

[[nodiscard]] std::string report_html(const Report& report);

}  // namespace talpa::inspect
