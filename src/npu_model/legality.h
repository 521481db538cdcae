// What no compiler may ask of the hardware (ethos-u65, sections 1, 2.5, 4 and 6): the model refuses such programs
// loudly, since what silicon would do is not known.
#pragma once

#include "base/core/error.h"
#include "npu/hardware.h"
#include "npu/operation.h"

namespace talpa::npu_model {

/// What the kernels rely on beyond what the decoder holds (channel counts, padding): npu::check_operands (strict runs
/// ask for all of npu::check: block layout too), and nothing that hardware may do but no description of it exists.
/// Errors: CommandStream, naming the operation, its offset and the rule; NotSupported for the undescribed (fp16
/// accumulators, tanh and sigmoid on 8 or 32 bits).
[[nodiscard]] Result<void> check_legal(const npu::Operation& op, const npu::Hardware& hardware);

}  // namespace talpa::npu_model
