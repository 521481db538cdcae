// How two tensors of one type differ.
#pragma once

#include <cstdint>
#include <optional>

#include "base/core/byte_reader.h"
#include "runtime/tensor.h"

namespace talpa::inspect {

struct TensorDifference {
    std::uint64_t elements = 0, differing = 0;
    double max_abs = 0;       ///< largest distance of two elements as numbers; infinite where one is no number
    std::uint64_t first = 0;  ///< index of the first element that differs, in stored order
    double first_a = 0, first_b = 0;
};

/// Nothing when the bytes are equal. Both have the same size, a multiple of the element's.
[[nodiscard]] std::optional<TensorDifference> difference(runtime::ScalarType type, Bytes a, Bytes b);

/// The element at `p` as a number; of types that are no numbers, its bits.
[[nodiscard]] double element_as_number(runtime::ScalarType type, const std::uint8_t* p);

}  // namespace talpa::inspect
