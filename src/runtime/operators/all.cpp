#include "runtime/operators/all.h"

#include <algorithm>
#include <array>

#include "runtime/operators/quantize.h"
#include "runtime/operators/rows.h"

namespace talpa::runtime {
namespace operators {
namespace {

template <std::size_t N, std::size_t M>
constexpr std::array<Operator, N + M> joined(const Operator (&a)[N], const Operator (&b)[M]) {
    std::array<Operator, N + M> all{};
    std::copy(a, a + N, all.begin());
    std::copy(b, b + M, all.begin() + N);
    return all;
}
constexpr auto kAll = joined(kQuantizeOperators, kRows);

}  // namespace
}  // namespace operators

OperatorTable all_operators() {
    return operators::kAll;
}

}  // namespace talpa::runtime
