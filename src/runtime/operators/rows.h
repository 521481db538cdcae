// The rows of table.def as a constant.
#pragma once

#include "runtime/operators/functions.h"

namespace talpa::runtime::operators {

inline constexpr Operator kRows[] = {
#define TALPA_OPERATOR(name, count, kinds, function, dtypes, notes) {name, count, kinds, run_##function},
#define TALPA_OPERATOR_WITH_ROOM(name, count, kinds, function, dtypes, notes) \
    {name, count, kinds, run_##function, temporary_##function},
#include "runtime/operators/table.def"
#undef TALPA_OPERATOR
#undef TALPA_OPERATOR_WITH_ROOM
};

}  // namespace talpa::runtime::operators
