// A compiled program run on the NPU model with the compiler's map beside it: what it computed, value by value of the
// graph that it was made from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/core/byte_reader.h"
#include "base/host/error.h"
#include "compiler/backend/compile.h"

namespace talpa::compiler {

struct TracedRun {
    /// By value of the graph: the real numbers that it had, in C order of its shape. Nothing for constants, and for
    /// values that exist nowhere (an activation that a table is applied to on its way out of the operation).
    std::vector<std::optional<std::vector<float>>> values;
    /// The program's outputs as real numbers.
    std::vector<std::vector<float>> outputs;
};

/// Runs the method "forward". `program`: 16-aligned bytes. `report`: of the compilation that made its command streams,
/// `npu`: that they are for. `inputs`: real numbers, in the program's order; integer inputs are quantized as the
/// program says. Errors: what keeps the program from running; inputs that do not fit.
[[nodiscard]] host::Result<TracedRun> traced_run(talpa::Bytes program, const std::string& name, const Graph& graph,
                                                 const CompileReport& report, const npu::Hardware& npu,
                                                 const std::vector<std::vector<float>>& inputs, unsigned threads);

}  // namespace talpa::compiler
