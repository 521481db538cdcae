// talpa compare with a model: float network, quantized network and the program on the NPU model, layer by layer.
#pragma once

#include "cli/compare_command.h"

namespace talpa::cli {

/// Is the file, by its first bytes, something else than a program? A file that cannot be read is none.
[[nodiscard]] bool is_model(const std::string& path);

/// Prints the layers and names the first that goes wrong. kExitFailed when one does, or when the program is not what
/// the model compiles to and computes something else.
[[nodiscard]] host::Result<int> compare_model(const CompareOptions& options);

}  // namespace talpa::cli
