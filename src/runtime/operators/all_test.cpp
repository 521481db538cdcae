#include "runtime/operators/all.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace talpa::runtime {
namespace {

TEST(OperatorTable, NamesAreUniqueAndWithinUpstreamsLimit) {
    std::map<std::string_view, int> seen;
    for (const Operator& op : all_operators()) {
        EXPECT_EQ(++seen[op.name], 1) << op.name;
        EXPECT_LE(op.name.size(), 99u) << op.name << ": upstream limits joined names (section 5.3)";
        EXPECT_NE(op.run, nullptr) << op.name;
    }
}

// Section 5.3: one tensor, or several: the schema's arguments and one more; a list of outputs: the list twice; prims:
// no tail.
TEST(OperatorTable, ArgumentCountsFollowTheReturnForm) {
    for (const Operator& op : all_operators()) {
        const bool is_prim = op.name.starts_with("executorch_prim::") || op.name == "aten::sym_size.int" ||
                             op.name == "aten::sym_numel" || op.name == "aten::_local_scalar_dense";
        EXPECT_EQ(op.arg_count, op.schema_args() + (is_prim ? 0 : 1)) << op.name;
    }
}

// The spec's own figures (sections 5.3 and 6.2, 6.3).
TEST(OperatorTable, ArgumentCountsOfTheSpecsExamples) {
    const std::map<std::string_view, int> wanted = {{"quantized_decomposed::quantize_per_tensor.out", 8},
                                                    {"quantized_decomposed::dequantize_per_tensor.out", 9},
                                                    {"cortex_m::dequantize_per_tensor.out", 8},
                                                    {"aten::topk.values", 8},
                                                    {"aten::split_with_sizes_copy.out", 5},
                                                    {"aten::copy_", 4},
                                                    {"executorch_prim::et_view.default", 3},
                                                    {"aten::sym_size.int", 3},
                                                    {"aten::flip.out", 4}};
    std::size_t found = 0;
    for (const Operator& op : all_operators())
        if (const auto it = wanted.find(op.name); it != wanted.end()) {
            ++found;
            EXPECT_EQ(op.arg_count, it->second) << op.name;
        }
    EXPECT_EQ(found, wanted.size());
}

}  // namespace
}  // namespace talpa::runtime
