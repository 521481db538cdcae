// The compiler's map from NPU operations to nodes of the model, in the shape of Vela's debug database.
#pragma once

#include "compiler/backend/compile.h"
#include "inspect/debug_map.h"
#include "inspect/report.h"

namespace talpa::cli {

/// `program`: the report of what was compiled, for what its operations cost.
[[nodiscard]] inspect::DebugMap debug_map_of(const std::string& model, const compiler::Graph& graph,
                                             const compiler::CompileReport& compiled, const inspect::Report& program);

}  // namespace talpa::cli
