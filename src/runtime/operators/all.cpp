#include "runtime/operators/all.h"

#include <algorithm>
#include <array>

#include "runtime/operators/functions.h"
#include "runtime/operators/quantize.h"

namespace talpa::runtime {
namespace operators {
namespace {

constexpr Operator kComputing[] = {
#define TALPA_OPERATOR(name, count, kinds, function, dtypes, notes) {name, count, kinds, run_##function},
#define TALPA_OPERATOR_WITH_ROOM(name, count, kinds, function, dtypes, notes) \
    {name, count, kinds, run_##function, temporary_##function},
#include "runtime/operators/table.def"
#undef TALPA_OPERATOR
#undef TALPA_OPERATOR_WITH_ROOM
};

template <std::size_t N, std::size_t M>
constexpr std::array<Operator, N + M> joined(const Operator (&a)[N], const Operator (&b)[M]) {
    std::array<Operator, N + M> all{};
    std::copy(a, a + N, all.begin());
    std::copy(b, b + M, all.begin() + N);
    return all;
}
constexpr auto kAll = joined(kQuantizeOperators, kComputing);

}  // namespace
}  // namespace operators

OperatorTable all_operators() {
    return operators::kAll;
}

}  // namespace talpa::runtime
