// Where a node comes from, out of what torch.export writes down about it (model-formats, section 1.4).
#pragma once

#include <string_view>

#include "compiler/graph/graph.h"
#include "compiler/import/json_tree.h"

namespace talpa::compiler::import::pt2 {

/// Its name, the line of the model's code and the module; what the file does not tell stays empty.
[[nodiscard]] Source read_source(Json node, std::string_view target);

}  // namespace talpa::compiler::import::pt2
