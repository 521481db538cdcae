// Convolution weights from the orders in which formats keep them to O x KH x KW x I/groups. Weights must be constants:
// the NPU reads them compressed.
#pragma once

#include "compiler/graph/builder.h"

namespace talpa::compiler::import {

/// From O x I/groups x KH x KW (or O x I/groups x K when `dims` is 1).
[[nodiscard]] host::Result<ValueId> weight_from_oihw(Builder& b, ValueId weight, std::size_t dims);

/// Of a transposed convolution, from I x O/groups x KH x KW (or x K).
[[nodiscard]] host::Result<ValueId> transposed_weight_from_iohw(Builder& b, ValueId weight, std::int64_t groups,
                                                                std::size_t dims);

}  // namespace talpa::compiler::import
