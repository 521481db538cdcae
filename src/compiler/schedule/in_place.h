// Which tensors take over the memory of what they are made of: an elementwise operation reads each element before it
// writes the same one, so where nobody else looks at its operand any more, the result can lie where that was.
#pragma once

#include <vector>

#include "compiler/schedule/plan.h"

namespace talpa::compiler {

/// By tensor: the operand whose place it takes, or kNoTensor. No two tensors have the same one; chains are possible.
/// Regions and rings of `placements` are looked at, addresses not.
[[nodiscard]] std::vector<TensorId> places_taken_over(const Network& network, const std::vector<Placement>& placements,
                                                      const std::vector<Action>& actions);

}  // namespace talpa::compiler
