// Programs that torch.export.save has written, float or quantized by PT2E.
#pragma once

#include "base/core/byte_reader.h"
#include "compiler/import/import.h"

namespace talpa::compiler::import::pt2 {

/// The graph as the file has it, not canonical yet.
[[nodiscard]] host::Result<Graph> read(talpa::Bytes file, const Options& options);

/// Every operator that is known, for documentation and tests: "aten.conv2d.default".
[[nodiscard]] std::vector<std::string> known_operators();

}  // namespace talpa::compiler::import::pt2
