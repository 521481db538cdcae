// The rows of table.def as a constant. A program that takes single rows of it at compile time links only their
// functions.
#pragma once

#include <iterator>

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

/// The row of that name; a name that is not there does not compile.
[[nodiscard]] consteval Operator row(std::string_view name) {
    for (const Operator& op : kRows)
        if (op.name == name) return op;
    return kRows[std::size(kRows)];  // out of range, which a constant may not be
}

}  // namespace talpa::runtime::operators
