// The CPU operators of a Cortex-M33 build: quantize and dequantize, and the small ones that a partitioned classifier
// leaves beside its delegates (tiers 0 and 1 and the few lines of tier 2; pte-format, section 6.1). Adding one is
// adding its name in firmware.cpp.
#pragma once

#include "runtime/operator.h"

namespace talpa::runtime {

[[nodiscard]] OperatorTable firmware_operators();

}  // namespace talpa::runtime
