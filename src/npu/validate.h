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

/// The part of it about addresses: bases and strides of every feature map that the operation touches are multiples of
/// 16 (bricks) or of the element size. What a misaligned map reads or writes is known for no hardware.
[[nodiscard]] Result<void> check_alignment(const Operation& op);

}  // namespace talpa::npu
