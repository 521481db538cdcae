// Where the elements of an N-dimensional value lie: a tensor, an offset and a stride for each dimension. Slices,
// permutations and most reshapes are other places of the same memory, so they cost nothing; the operation that needs
// another order makes the copy.
#pragma once

#include <optional>
#include <vector>

#include "compiler/graph/graph.h"
#include "compiler/lower/network.h"

namespace talpa::compiler {

struct Place {
    TensorId tensor = kNoTensor;
    std::int64_t offset = 0;
    std::vector<std::int64_t> strides;  ///< in elements, one a dimension
};

[[nodiscard]] std::vector<std::int64_t> dense_strides(const Shape& shape);
[[nodiscard]] bool is_dense(const Place& place, const Shape& shape);
/// The same elements in another shape, or nothing if no strides can express that.
[[nodiscard]] std::optional<Place> reshape(const Place& place, const Shape& from, const Shape& to);
[[nodiscard]] Place permute(const Place& place, const std::vector<int>& order);
/// Strides of `shape` seen as the larger `wanted` that it broadcasts to: 0 where it is repeated.
[[nodiscard]] Place broadcast(const Place& place, const Shape& shape, const Shape& wanted);

/// Dimension n of the batch left out: the last three as height, width, channels. Nothing if the channels do not lie
/// side by side. Fewer dimensions count as 1.
[[nodiscard]] std::optional<View> image_view(const Place& place, const Shape& shape, std::int64_t batch,
                                             std::int32_t zero_point);

}  // namespace talpa::compiler
