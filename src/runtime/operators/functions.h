// The functions behind the operator table, one a row of table.def; defined in the files of their families.
// Freestanding.
#pragma once

#include "runtime/operator.h"

namespace talpa::runtime::operators {

#define TALPA_OPERATOR(name, count, kinds, function, dtypes, notes) \
    [[nodiscard]] Result<void> run_##function(Arguments& args);
#define TALPA_OPERATOR_WITH_ROOM(name, count, kinds, function, dtypes, notes) \
    [[nodiscard]] Result<void> run_##function(Arguments& args);               \
    [[nodiscard]] Result<std::size_t> temporary_##function(const Arguments& args);
#include "runtime/operators/table.def"
#undef TALPA_OPERATOR
#undef TALPA_OPERATOR_WITH_ROOM

struct Shape;
/// The sizes that the list `size_arg` gives self: as many elements, one -1 worked out.
[[nodiscard]] Result<Shape> resolve_view(const Arguments& args, const Tensor& self, std::size_t size_arg);

}  // namespace talpa::runtime::operators
