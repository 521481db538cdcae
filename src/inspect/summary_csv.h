// A program's cost as Vela's summary has it: a line of column names and a line of values. Names, order and units are
// Vela 5.2's; columns whose figures we do not keep are left out.
#pragma once

#include <string>

#include "inspect/report.h"

namespace talpa::inspect {

/// Of the method that summaries are about, all its delegates together. `network`: its name in the first columns.
[[nodiscard]] std::string summary_csv(const Report& report, const std::string& network);

}  // namespace talpa::inspect
