// Which tensors take over the memory of what they are made of: an elementwise operation reads each element before it
// writes the same one, so where nobody else looks at its operand any more, the result can lie where that was.
#pragma once

#include <vector>

#include "compiler/schedule/plan.h"

namespace talpa::compiler {

/// May the result lie where this operand of the step does, as far as the step itself goes? Its maps have the same
/// elements in the same places. Whether anybody else looks at the operand is another question.
[[nodiscard]] bool may_take_place(const Network& network, const Step& step, const View& operand);

/// By tensor: the operand whose place it takes, or kNoTensor. No two tensors have the same one; chains are possible.
/// Regions and rings of `placements` are looked at, addresses not.
[[nodiscard]] std::vector<TensorId> places_taken_over(const Network& network, const std::vector<Placement>& placements,
                                                      const std::vector<Action>& actions);

}  // namespace talpa::compiler
