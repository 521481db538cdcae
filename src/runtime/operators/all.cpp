#include "runtime/operators/all.h"

#include "runtime/operators/functions.h"

namespace talpa::runtime {
namespace operators {
namespace {

constexpr Operator kAll[] = {
#define TALPA_OPERATOR(name, count, kinds, function, dtypes, notes) {name, count, kinds, run_##function},
#define TALPA_OPERATOR_WITH_ROOM(name, count, kinds, function, dtypes, notes) \
    {name, count, kinds, run_##function, temporary_##function},
#include "runtime/operators/table.def"
#undef TALPA_OPERATOR
#undef TALPA_OPERATOR_WITH_ROOM
};

}  // namespace
}  // namespace operators

OperatorTable all_operators() {
    return operators::kAll;
}

}  // namespace talpa::runtime
