// From a Tensor in the file to a Tensor of the executor: everything about it that the file alone can tell is checked
// here. Freestanding. (pte-format, sections 3.1 and 4; V10 to V17)
#pragma once

#include <span>

#include "base/core/error.h"
#include "pte/data_file.h"
#include "pte/program.h"
#include "runtime/tensor.h"

namespace talpa::runtime {

/// Where a tensor's bytes are before a run (section 4, "the four cases").
struct TensorSource {
    bool planned = false;
    std::uint32_t arena = 0;   ///< 0-based: memory id - 1
    std::uint32_t offset = 0;  ///< in the arena
    bool has_data = false;     ///< constant, or initial value of a planned tensor
    Bytes data;
};

struct LoadedTensor {
    Tensor tensor;  ///< data is set for constants only
    TensorSource source;
};

/// `value` is the index in the value table, for messages; `arena_sizes` the plan's non_const_buffer_sizes, checked.
[[nodiscard]] Result<LoadedTensor> load_tensor(const pte::Program& program, const pte::TensorView& view,
                                               std::uint32_t value, pte::Vector<std::int64_t> arena_sizes,
                                               pte::DataFiles data_files);

}  // namespace talpa::runtime
