// Do two runs give the same, and if not, where do they part? Outputs first; then, of two programs, the first tensor
// inside that differs: operation by operation where both command streams have the same operations, else at the
// instructions of the method.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/host/error.h"
#include "inspect/program_run.h"
#include "inspect/tensor_difference.h"

namespace talpa::inspect {

/// One output of both sides.
struct OutputComparison {
    std::uint32_t index = 0;  ///< among the tensor outputs
    std::string description;  ///< "float32 [1, 1000]"
    std::string written_by;   ///< "instruction 2 (delegate 0)"
    std::string problem;      ///< other type or shape on the other side; empty: comparable
    std::vector<std::int32_t> shape;
    std::optional<TensorDifference> difference;

    [[nodiscard]] bool equal() const { return problem.empty() && !difference; }
};

/// The first tensor inside that differs.
struct PointDifference {
    std::string a, b;         ///< what it is on either side
    std::string description;  ///< type and shape
    std::vector<std::int32_t> shape;
    TensorDifference difference;
};

struct Comparison {
    std::vector<OutputComparison> outputs;
    std::optional<PointDifference> first;
    std::string note;  ///< why no tensor inside is named, or how it was found

    [[nodiscard]] bool equal() const {
        for (const OutputComparison& output : outputs)
            if (!output.equal()) return false;
        return true;
    }
};

/// Errors: whatever keeps either side from running; its name is in the context.
[[nodiscard]] host::Result<Comparison> compare_programs(const ProgramOptions& a, const ProgramOptions& b,
                                                        const std::vector<std::string>& inputs);

/// Against DIR/out0.bin … or DIR/STEM.out0.bin …, STEM being the program's. NotFound when an output is not there;
/// InvalidArgument when a file has another size than the output, or there is nothing to compare. Recorded outputs that
/// the program does not have are differences.
[[nodiscard]] host::Result<Comparison> compare_with_recorded(const ProgramOptions& program,
                                                             const std::filesystem::path& folder,
                                                             const std::vector<std::string>& inputs);

}  // namespace talpa::inspect
