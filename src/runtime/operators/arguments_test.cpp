// What operators answer to arguments that a stranger's program may bring: an error that names the operator and the
// argument, and nothing written. And what they do with dynamic outputs.
#include "runtime/operators/test_call.h"

namespace talpa::runtime::operators::testing {
namespace {

Value boolean(bool b) {
    Value v = integer(b ? 1 : 0);
    v.kind = Value::Kind::Bool;
    return v;
}

TEST(OperatorArguments, ADimensionThatIsNotThere) {
    Filled x = floats({2, 2}, {1, 2, 3, 4}), out = floats({2, 2}, {9, 9, 9, 9});
    EXPECT_EQ(call("aten::_softmax.out", {tensor(x.t), integer(2), boolean(false), tensor(out.t)}).error,
              "aten::_softmax.out: argument 1 names dimension 2, there are 2");
    EXPECT_EQ(call("aten::_softmax.out", {tensor(x.t), integer(INT64_MIN), boolean(false), tensor(out.t)}).error,
              "aten::_softmax.out: argument 1 names dimension -9223372036854775808, there are 2");
    EXPECT_EQ(out.t.as<float>()[0], 9);
}

TEST(OperatorArguments, SizesThatDoNotBroadcast) {
    Filled a = floats({2}, {1, 2}), b = floats({3}, {1, 2, 3}), out = floats({3}, {0, 0, 0});
    EXPECT_EQ(call("aten::mul.out", {tensor(a.t), tensor(b.t), tensor(out.t)}).error,
              "aten::mul.out: dimension 0 of argument 1 has size 3, which does not broadcast with 2");
}

TEST(OperatorArguments, AnOutputOfAnotherShape) {
    Filled x = floats({2}, {1, 2}), out = floats({3}, {9, 9, 9}), flat = floats({1, 2}, {9, 9});
    EXPECT_EQ(call("aten::neg.out", {tensor(x.t), tensor(out.t)}).error,
              "aten::neg.out: the result's dimension 0 is 2, its tensor in the program has 3");
    EXPECT_EQ(call("aten::neg.out", {tensor(x.t), tensor(flat.t)}).error,
              "aten::neg.out: the result has 1 dimensions, its tensor in the program has 2");
    EXPECT_EQ(out.t.as<float>()[0], 9);
}

TEST(OperatorArguments, ADynamicOutputGetsTheShapeOfTheResult) {
    Filled x = floats({2}, {1, 2}), out = floats({3}, {9, 9, 9});
    out.t.is_dynamic = true;
    EXPECT_EQ(call("aten::neg.out", {tensor(x.t), tensor(out.t)}).error, "");
    EXPECT_EQ(out.t.sizes[0], 2);
    EXPECT_EQ(out.t.as<float>()[1], -2);
    EXPECT_EQ(out.t.as<float>()[2], 9);
}

TEST(OperatorArguments, ADynamicTensorThatIsInputAndOutputKeepsItsShape) {
    Filled x = floats({2, 2}, {1, 2, 3, 4});
    x.t.is_dynamic = true;
    EXPECT_EQ(
        call("aten::slice_copy.Tensor_out", {tensor(x.t), integer(0), integer(0), integer(1), integer(1), tensor(x.t)})
            .error,
        "aten::slice_copy.Tensor_out: output argument 5 is argument 0 too and would get another shape");
    EXPECT_EQ(x.t.sizes[0], 2);
    EXPECT_EQ(call("aten::neg.out", {tensor(x.t), tensor(x.t)}).error, "") << "in place is fine where the shape stays";
    EXPECT_EQ(x.t.as<float>()[3], -4);
}

TEST(OperatorArguments, TypesThatAreNotSupportedAreNamed) {
    Filled half = filled<std::uint16_t>(ScalarType::Float16, {2}, {0, 0}), x = floats({2}, {1, 2}),
           out = floats({2}, {0, 0});
    EXPECT_EQ(call("aten::exp.out", {tensor(half.t), tensor(out.t)}).error,
              "aten::exp.out: argument 0 is float16; supported are uint8, int8, int16, int32, int64, float32 and bool");
    EXPECT_EQ(call("aten::exp.out", {tensor(x.t), tensor(half.t)}).error,
              "aten::exp.out: argument 1 is float16; supported are uint8, int8, int16, int32, int64, float32 and bool");
    Filled ints = int64s({2}, {0, 0});
    EXPECT_EQ(call("aten::exp.out", {tensor(x.t), tensor(ints.t)}).error,
              "aten::exp.out: a result of type float32 does not go into argument 1 of type int64");
    Filled other_half = filled<std::uint16_t>(ScalarType::Float16, {2}, {0, 0});
    EXPECT_EQ(call("aten::clone.out", {tensor(half.t), Value{}, tensor(other_half.t)}).error, "")
        << "moving elements needs no arithmetic";
}

TEST(OperatorArguments, AnIndexOutsideOfItsDimension) {
    Filled x = floats({3}, {1, 2, 3}), out = floats({2}, {9, 9});
    for (const std::int64_t bad : {std::int64_t{3}, std::int64_t{-1}, INT64_MAX}) {
        Filled index = int64s({2}, {0, bad});
        EXPECT_EQ(
            call("aten::index_select.out", {tensor(x.t), integer(0), tensor(index.t), tensor(out.t)}).error,
            "aten::index_select.out: index " + std::to_string(bad) + " of argument 2 is outside a dimension of size 3");
        EXPECT_EQ(
            call("aten::gather.out", {tensor(x.t), integer(0), tensor(index.t), boolean(false), tensor(out.t)}).error,
            "aten::gather.out: index " + std::to_string(bad) + " of argument 2 is outside a dimension of size 3");
    }
}

TEST(OperatorArguments, IntegersDividedByZero) {
    Filled a = int64s({2}, {1, 2}), b = int64s({2}, {1, 0}), out = int64s({2}, {0, 0});
    EXPECT_EQ(call("aten::floor_divide.out", {tensor(a.t), tensor(b.t), tensor(out.t)}).error,
              "aten::floor_divide.out: an integer is divided by zero");
    a = int64s({2}, {INT64_MIN, 7}), b = int64s({2}, {-1, -1});
    EXPECT_EQ(call("aten::floor_divide.out", {tensor(a.t), tensor(b.t), tensor(out.t)}).error, "");
    EXPECT_EQ(out.t.as<std::int64_t>()[0], INT64_MIN) << "wraps";
    EXPECT_EQ(out.t.as<std::int64_t>()[1], -7);
}

TEST(OperatorArguments, TopkOfMoreThanThereIs) {
    Filled x = floats({3}, {1, 2, 3}), values = floats({4}, {0, 0, 0, 0}), indices = int64s({4}, {0, 0, 0, 0});
    EXPECT_EQ(call("aten::topk.values", {tensor(x.t), integer(4), integer(0), boolean(true), boolean(true),
                                         tensor(values.t), tensor(indices.t)})
                  .error,
              "aten::topk.values: 4 elements are wanted of a dimension of size 3");
}

TEST(OperatorArguments, TopkAndSortSayHowMuchRoomTheyNeed) {  // section 6.3: dim_size × 16 bytes
    Filled x = floats({2, 3}, {1, 2, 3, 4, 5, 6}), values = floats({2, 1}, {0, 0}), indices = int64s({2, 1}, {0, 0});
    std::vector<Value> v = {tensor(x.t),   integer(1),       integer(1),       boolean(true),
                            boolean(true), tensor(values.t), tensor(indices.t)};
    const std::vector<std::uint32_t> all = {0, 1, 2, 3, 4, 5, 6};
    const Operator& op = operator_named("aten::topk.values");
    alignas(16) std::array<std::uint8_t, 48> room{};
    EXPECT_EQ(op.temporary_bytes(Arguments(op.name, v, all, {})).value(), 48u);
    Arguments too_small(op.name, v, all, std::span(room).first(47));
    EXPECT_EQ(op.run(too_small).error().code, ErrorCode::MemoryAllocation);
    Arguments enough(op.name, v, all, room);
    ASSERT_TRUE(op.run(enough).has_value());
    EXPECT_EQ(values.t.as<float>()[1], 6);
    EXPECT_EQ(indices.t.as<std::int64_t>()[1], 2);
}

TEST(OperatorArguments, ArgmaxOverEverythingCountsInStoredOrder) {  // section 6.3
    Filled x = floats({1, 2, 1, 2}, {1, 2, 5, 3}), out = filled<std::int64_t>(ScalarType::Int64, {}, {0});
    x.t.dim_order = {0, 2, 3, 1};
    EXPECT_EQ(call("aten::argmax.out", {tensor(x.t), Value{}, boolean(false), tensor(out.t)}).error, "");
    EXPECT_EQ(out.t.as<std::int64_t>()[0], 2) << "the third element in memory, whatever its logical place";
}

TEST(OperatorArguments, EmptyTensorsHaveNoLargestElement) {
    Filled x = floats({0}, {}), out = filled<std::int64_t>(ScalarType::Int64, {}, {0}), value = floats({}, {0});
    EXPECT_EQ(call("aten::argmax.out", {tensor(x.t), integer(0), boolean(false), tensor(out.t)}).error,
              "aten::argmax.out: an empty tensor has no largest or smallest element");
    EXPECT_EQ(call("aten::max.unary_out", {tensor(x.t), tensor(value.t)}).error,
              "aten::max.unary_out: an empty tensor has no largest or smallest element");
}

TEST(OperatorArguments, AConvolutionWhoseChannelsDoNotMatch) {
    Filled x = floats({1, 2, 1, 1}, {1, 2}), w = floats({1, 3, 1, 1}, {1, 2, 3}), out = floats({1, 1, 1, 1}, {9});
    const std::vector<std::int64_t> ones = {10, 10}, zeros = {11, 11};
    const auto list = [](const std::vector<std::int64_t>& items) {
        Value v;
        v.kind = Value::Kind::IntList;
        v.items = reinterpret_cast<const std::uint8_t*>(items.data());
        v.count = static_cast<std::uint32_t>(items.size());
        return v;
    };
    std::vector<Value> v = {tensor(x.t),    tensor(w.t), Value{},    list(ones),    list(zeros), list(ones),
                            boolean(false), list(zeros), integer(1), tensor(out.t), integer(1),  integer(0)};
    const std::vector<std::uint32_t> indices = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    const Operator& op = operator_named("aten::convolution.out");
    Arguments args(op.name, v, indices, {});
    const auto result = op.run(args);
    std::array<char, 200> text;
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().render(text),
              "aten::convolution.out: 2 channels and a weight of 1 x 3 do not make 1 groups");
    v[8] = integer(0);
    EXPECT_FALSE(op.run(args).has_value()) << "no group at all";
}

}  // namespace
}  // namespace talpa::runtime::operators::testing
