// Is an operation one that the hardware defines? Everything that decodes but that the documentation forbids or leaves
// undefined: alignment, limits, combinations of precisions, the division of the shared RAM. A device may do anything
// with such a program; strict runs refuse it. (ethos-u65, sections 1, 2.5, 3.5, 4.1, 6.2, 9.2 and 9.4)
#pragma once

#include "base/core/error.h"
#include "npu/hardware.h"
#include "npu/operation.h"

namespace talpa::npu {

/// The first rule that the operation breaks on this hardware, with its stream offset and the values (CommandStream), or
/// nothing. It looks at the operation alone: not at memory sizes (scan), not at its neighbours (hazards).
[[nodiscard]] Result<void> check(const Operation& op, const Hardware& hardware = kU65_256);

/// Of a kernel operation the part of it that says what there is to compute: precisions of the inputs, cores, the
/// kernel's extent, where its table lies, and addresses (bases and strides of every feature map are multiples of 16 for
/// bricks, else of the element size; weights of 16). What hardware makes of anything else is not known.
[[nodiscard]] Result<void> check_operands(const Operation& op, const Hardware& hardware = kU65_256);

}  // namespace talpa::npu
