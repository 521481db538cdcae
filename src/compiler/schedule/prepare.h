// Changes of a network that need no addresses: tables joined to the operation before them, bricks or rows for each
// tensor.
#pragma once

#include <optional>

#include "compiler/lower/network.h"
#include "compiler/schedule/target.h"

namespace talpa::compiler {

/// Operations that only send a map through a table are done by the operation that makes the map.
void fuse_tables(Network& network);

/// Chooses bricks where every view of a tensor allows it (ethos-u65, sections 4.1 and 10.1).
void choose_layouts(Network& network);

/// Cuts convolutions over few positions with many weights into several over their output channels. True if any was.
bool slice_filters(Network& network);

/// Rows of its tensor that a view takes: row y of the view is tensor row first + y * step. Nothing if the view is no
/// such band of whole positions (a transposed or reshaped one).
struct Band {
    std::uint32_t first = 0, step = 1;
    std::uint32_t column = 0, channel = 0;
};
[[nodiscard]] std::optional<Band> band_of(const Tensor& tensor, const View& view);

}  // namespace talpa::compiler
