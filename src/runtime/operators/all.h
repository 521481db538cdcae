// Every CPU operator, for hosts. (pte-format, section 6.1; docs/operators.md is generated from the same table)
#pragma once

#include "runtime/operator.h"

namespace talpa::runtime {

[[nodiscard]] OperatorTable all_operators();

}  // namespace talpa::runtime
