// The facts as one JSON document. Keys and units: docs/inspect.md.
#pragma once

#include "base/host/json.h"
#include "inspect/report.h"

namespace talpa::inspect {

[[nodiscard]] host::Json report_json(const Report& report);
/// The document as text; bytes of the file that are no UTF-8 are replaced.
[[nodiscard]] std::string json_text(const host::Json& json, int indent = 2);

}  // namespace talpa::inspect
