// Operators that write a number of the value table, and the views that copy nothing. Expected values are Python's where
// the operator is Python's (//, round, /), C++'s where upstream's is (mod, floordiv.int).
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "runtime/operators/test_call.h"

namespace talpa::runtime::operators::testing {
namespace {

std::int64_t integer_of(std::string_view op, Value a, Value b) {
    const Outcome o = call(std::string("executorch_prim::") + std::string(op), {a, b, integer(0)});
    EXPECT_EQ(o.error, "") << op;
    EXPECT_EQ(o.value.kind, Value::Kind::Int) << op;
    return o.value.i;
}
double real_of(std::string_view op, Value a, Value b) {
    const Outcome o = call(std::string("executorch_prim::") + std::string(op), {a, b, real(0)});
    EXPECT_EQ(o.error, "") << op;
    EXPECT_EQ(o.value.kind, Value::Kind::Double) << op;
    return o.value.d;
}
bool truth_of(std::string_view op, Value a, Value b) {
    const Outcome o = call(std::string("executorch_prim::") + std::string(op), {a, b, integer(0)});
    EXPECT_EQ(o.value.kind, Value::Kind::Bool) << op << o.error;
    return o.value.i != 0;
}

TEST(Primitive, AlgebraKeepsIntegersAndMixesWithDoubles) {
    EXPECT_EQ(integer_of("add.Scalar", integer(3), integer(4)), 7);
    EXPECT_EQ(integer_of("sub.Scalar", integer(3), integer(4)), -1);
    EXPECT_EQ(integer_of("mul.Scalar", integer(3), integer(4)), 12);
    EXPECT_EQ(real_of("add.Scalar", integer(3), real(0.5)), 3.5);
    EXPECT_EQ(real_of("mul.Scalar", real(1.5), integer(4)), 6.0);
    EXPECT_EQ(real_of("truediv.Scalar", integer(3), integer(4)), 0.75);
}

TEST(Primitive, FloordivIsPythons) {
    EXPECT_EQ(integer_of("floordiv.Scalar", integer(7), integer(2)), 3);
    EXPECT_EQ(integer_of("floordiv.Scalar", integer(-7), integer(2)), -4);
    EXPECT_EQ(integer_of("floordiv.Scalar", integer(7), integer(-2)), -4);
    EXPECT_EQ(integer_of("floordiv.Scalar", integer(-8), integer(2)), -4);
    EXPECT_EQ(integer_of("floordiv.Scalar", integer(-7), integer(-2)), 3);
    EXPECT_EQ(real_of("floordiv.Scalar", real(-7.5), integer(2)), -4.0);
    EXPECT_EQ(integer_of("floordiv.int", integer(-7), integer(2)), -3) << "upstream truncates in this one";
    EXPECT_EQ(integer_of("mod.Scalar", integer(-7), integer(2)), -1) << "the sign of the dividend, as C++";
}

TEST(Primitive, Comparisons) {
    EXPECT_TRUE(truth_of("eq.Scalar", integer(2), real(2.0)));
    EXPECT_FALSE(truth_of("gt.Scalar", integer(2), integer(2)));
    EXPECT_TRUE(truth_of("ge.Scalar", integer(2), integer(2)));
    EXPECT_TRUE(truth_of("lt.Scalar", real(1.5), integer(2)));
    EXPECT_FALSE(truth_of("le.Scalar", integer(3), integer(2)));
    EXPECT_FALSE(truth_of("eq.Scalar", integer((std::int64_t{1} << 53) + 1), integer(std::int64_t{1} << 53)))
        << "not through double";
    EXPECT_EQ(integer_of("sym_max.Scalar", integer(2), integer(-3)), 2);
    EXPECT_EQ(integer_of("sym_min.Scalar", integer(2), integer(-3)), -3);
}

TEST(Primitive, OneNumber) {
    EXPECT_EQ(call("executorch_prim::neg.Scalar", {integer(5), integer(0)}).value.i, -5);
    EXPECT_EQ(call("executorch_prim::neg.Scalar", {real(2.5), integer(0)}).value.d, -2.5);
    EXPECT_EQ(call("executorch_prim::sym_float.Scalar", {integer(3), real(0)}).value.d, 3.0);
    EXPECT_EQ(call("executorch_prim::ceil.Scalar", {real(-1.5), integer(0)}).value.i, -1);
    EXPECT_EQ(call("executorch_prim::round.Scalar", {real(2.5), integer(0)}).value.i, 2);
    EXPECT_EQ(call("executorch_prim::trunc.Scalar", {real(-1.5), integer(0)}).value.i, -1);
}

TEST(Primitive, WhatHasNoResultIsAnError) {
    EXPECT_EQ(call("executorch_prim::floordiv.Scalar", {integer(7), integer(0), integer(0)}).error,
              "executorch_prim::floordiv.Scalar: 7 is divided by zero");
    EXPECT_EQ(call("executorch_prim::mod.int", {integer(7), integer(0), integer(0)}).error,
              "executorch_prim::mod.int: 7 is divided by zero");
    EXPECT_EQ(call("executorch_prim::mul.Scalar", {integer(INT64_MAX), integer(2), integer(0)}).error,
              "executorch_prim::mul.Scalar: 9223372036854775807 and 2 overflow 64 bits");
    EXPECT_NE(call("executorch_prim::floordiv.int", {integer(INT64_MIN), integer(-1), integer(0)}).error, "");
    EXPECT_NE(call("executorch_prim::neg.Scalar", {integer(INT64_MIN), integer(0)}).error, "");
    EXPECT_NE(call("executorch_prim::ceil.Scalar", {real(1e30), integer(0)}).error, "");
    EXPECT_NE(call("executorch_prim::trunc.Scalar", {real(std::nan("")), integer(0)}).error, "");
    Tensor t;
    EXPECT_EQ(call("executorch_prim::add.Scalar", {integer(1), integer(2), tensor(t)}).error,
              "executorch_prim::add.Scalar: argument 2 must be an Int, Bool or Double, is Tensor")
        << "a tensor's slot is not overwritten";
}

class TensorPrimitive : public ::testing::Test {
  protected:
    TensorPrimitive() {
        self_.rank = 2;
        self_.sizes = {2, 3};
        self_.dim_order = {0, 1};
        self_.data = reinterpret_cast<std::uint8_t*>(data_.data());
        self_.capacity_bytes = sizeof(data_);
        out_.rank = 1;
        out_.sizes = {6};
    }
    Value list(std::vector<std::int64_t> items) {
        items_ = std::move(items);
        Value v;
        v.kind = Value::Kind::IntList;
        v.items = reinterpret_cast<const std::uint8_t*>(items_.data());
        v.count = static_cast<std::uint32_t>(items_.size());
        return v;
    }
    std::array<float, 6> data_{1, 2, 3, 4, 5, 6};
    std::vector<std::int64_t> items_;
    Tensor self_, out_;
};

TEST_F(TensorPrimitive, SymSizeAndNumelReadTheShape) {
    EXPECT_EQ(call("aten::sym_size.int", {tensor(self_), integer(-1), integer(0)}).value.i, 3);
    EXPECT_EQ(call("aten::sym_numel", {tensor(self_), integer(0)}).value.i, 6);
    EXPECT_EQ(call("aten::sym_size.int", {tensor(self_), integer(2), integer(0)}).error,
              "aten::sym_size.int: argument 1 names dimension 2, there are 2");
}

TEST_F(TensorPrimitive, LocalScalarDenseReadsOneElement) {
    EXPECT_NE(call("aten::_local_scalar_dense", {tensor(self_), real(0)}).error, "");
    self_.sizes = {1, 1};
    const Outcome o = call("aten::_local_scalar_dense", {tensor(self_), real(0)});
    EXPECT_EQ(o.value.kind, Value::Kind::Double);
    EXPECT_EQ(o.value.d, 1.0);
}

TEST_F(TensorPrimitive, ViewIsAnotherNameForTheSameMemory) {
    // the list's item is value 3
    std::vector<Value> values = {tensor(self_), list({3}), tensor(out_), integer(-1)};
    const std::array<std::uint32_t, 3> indices{0, 1, 2};
    Arguments args("executorch_prim::et_view.default", values, indices, {});
    const auto result = operator_named("executorch_prim::et_view.default").run(args);
    ASSERT_TRUE(result.has_value());
    EXPECT_EQ(out_.data, self_.data);
    EXPECT_EQ(out_.sizes[0], 6);
    values[3] = integer(5);
    EXPECT_FALSE(operator_named("executorch_prim::et_view.default").run(args).has_value()) << "6 elements are not 5";
    values[3] = integer(6);
    self_.is_constant = true;
    ASSERT_TRUE(operator_named("executorch_prim::et_view.default").run(args).has_value());
    EXPECT_TRUE(out_.is_constant) << "a view of a constant must not be written";
}

TEST_F(TensorPrimitive, CopyIndexFillsEntryAfterEntry) {
    std::array<float, 9> all{};
    Tensor to;
    to.rank = 2;
    to.dim_order = {0, 1};
    to.sizes = {0, 3};
    to.is_dynamic = true;
    to.data = reinterpret_cast<std::uint8_t*>(all.data());
    to.capacity_bytes = sizeof(all);
    Tensor row = self_;
    row.rank = 1;
    row.sizes = {3};
    for (int k = 0; k < 3; ++k)
        EXPECT_EQ(call("executorch_prim::et_copy_index.tensor", {tensor(to), tensor(row), integer(k)}).error, "");
    EXPECT_EQ(to.sizes[0], 3);
    EXPECT_EQ(all, (std::array<float, 9>{1, 2, 3, 1, 2, 3, 1, 2, 3}));
    EXPECT_NE(call("executorch_prim::et_copy_index.tensor", {tensor(to), tensor(row), integer(3)}).error, "")
        << "no room for a fourth";
}

}  // namespace
}  // namespace talpa::runtime::operators::testing
