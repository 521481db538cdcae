#include "runtime/operator.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace talpa::runtime {
namespace {

std::string text(const Error& error) {
    std::array<char, 200> buffer;
    return std::string(error.render(buffer));
}

// Values: 0 tensor, 1 Int 7, 2 Double 0.5, 3 Null, 4 IntList [1, 1], 5 TensorList [0], 6 OptionalTensorList [-1, 0, 3],
// 7 Bool
class ArgumentsTest : public ::testing::Test {
  protected:
    ArgumentsTest() {
        tensor_.rank = 2;
        tensor_.sizes = {2, 3};
        tensor_.dim_order = {0, 1};
        tensor_.data = reinterpret_cast<std::uint8_t*>(data_.data());
        tensor_.capacity_bytes = sizeof(data_);
        values_[0].kind = Value::Kind::Tensor;
        values_[0].tensor = &tensor_;
        values_[1].kind = Value::Kind::Int;
        values_[1].i = 7;
        values_[2].kind = Value::Kind::Double;
        values_[2].d = 0.5;
        set_list(values_[4], Value::Kind::IntList, int_items_.data(), 2);
        set_list(values_[5], Value::Kind::TensorList, tensor_items_.data(), 1);
        set_list(values_[6], Value::Kind::OptionalTensorList, optional_items_.data(), 3);
        values_[7].kind = Value::Kind::Bool;
        values_[7].i = 1;
    }
    static void set_list(Value& v, Value::Kind kind, const void* items, std::uint32_t count) {
        v.kind = kind;
        v.items = static_cast<const std::uint8_t*>(items);
        v.count = count;
    }
    [[nodiscard]] Arguments arguments() { return Arguments("aten::x.out", values_, indices_, temporary_); }

    std::array<float, 6> data_{};
    Tensor tensor_;
    std::array<std::int64_t, 2> int_items_{1, 1};
    std::array<std::int32_t, 1> tensor_items_{0};
    std::array<std::int32_t, 3> optional_items_{-1, 0, 3};
    std::array<Value, 8> values_{};
    std::array<std::uint32_t, 8> indices_{0, 1, 2, 3, 4, 5, 6, 7};
    alignas(16) std::array<std::uint8_t, 48> temporary_{};
};

TEST_F(ArgumentsTest, ReadsEachKind) {
    const Arguments args = arguments();
    EXPECT_EQ(args.tensor(0).value(), &tensor_);
    EXPECT_EQ(args.integer(1).value(), 7);
    EXPECT_EQ(args.number(1).value(), 7.0);
    EXPECT_EQ(args.number(2).value(), 0.5);
    EXPECT_TRUE(args.is_null(3));
    EXPECT_EQ(args.list_size(4).value(), 2u);
    EXPECT_EQ(args.list_integer(4, 1).value(), 7);
    EXPECT_EQ(args.list_tensor(5, 0).value(), &tensor_);
    EXPECT_EQ(args.list_tensor(6, 0).value(), nullptr) << "index -1";
    EXPECT_EQ(args.list_tensor(6, 1).value(), &tensor_);
    EXPECT_EQ(args.list_tensor(6, 2).value(), nullptr) << "index of a Null";
    EXPECT_TRUE(args.boolean(7).value());
}

TEST_F(ArgumentsTest, WrongKindNamesOperatorArgumentAndKinds) {
    EXPECT_EQ(text(arguments().tensor(1).error()), "aten::x.out: argument 1 must be a Tensor, is Int");
    EXPECT_EQ(text(arguments().integer(2).error()), "aten::x.out: argument 2 must be an Int, is Double");
    EXPECT_EQ(text(arguments().list_integer(5, 0).error()), "aten::x.out: argument 5 must be IntList, is TensorList");
}

TEST_F(ArgumentsTest, ListItemsAreCheckedAgain) {
    EXPECT_EQ(text(arguments().list_integer(4, 2).error()),
              "aten::x.out: argument 4 is a list of 2 items, item 2 is wanted");
    int_items_[0] = 8;
    EXPECT_EQ(text(arguments().list_integer(4, 0).error()),
              "aten::x.out: item 0 of argument 4 is value 8, there are 8");
}

TEST_F(ArgumentsTest, ConstantIsNoOutput) {
    tensor_.is_constant = true;
    EXPECT_TRUE(arguments().tensor(0).has_value());
    EXPECT_EQ(text(arguments().out(0).error()), "aten::x.out: argument 0 is an output, but the tensor is a constant");
}

TEST_F(ArgumentsTest, TensorWithoutMemoryIsRefused) {
    tensor_.data = nullptr;
    EXPECT_EQ(arguments().tensor(0).error().code, ErrorCode::InvalidState);
}

TEST_F(ArgumentsTest, TemporaryPiecesFollowAtMultiplesOfSixteen) {
    Arguments args = arguments();
    EXPECT_EQ(args.temporary(5).value().data(), temporary_.data());
    EXPECT_EQ(args.temporary(16).value().data(), temporary_.data() + 16);
    EXPECT_EQ(text(args.temporary(17).error()), "aten::x.out: needs 17 bytes of the temporary pool, 16 are left");
}

TEST_F(ArgumentsTest, OnlyDynamicTensorsChangeTheirSizesAndOnlyWithinTheirMemory) {
    EXPECT_TRUE(arguments().resize(tensor_, std::array{2, 3}).has_value());
    EXPECT_EQ(text(arguments().resize(tensor_, std::array{1, 3}).error()),
              "aten::x.out: the result's dimension 0 is 1, its tensor in the program has 2");
    tensor_.is_dynamic = true;
    EXPECT_TRUE(arguments().resize(tensor_, std::array{1, 3}).has_value());
    EXPECT_EQ(tensor_.sizes[0], 1);
    EXPECT_EQ(text(arguments().resize(tensor_, std::array{7, 1}).error()),
              "aten::x.out: the result has 28 bytes, its tensor has room for 24");
    EXPECT_EQ(arguments().resize(tensor_, std::array{1, -3}).error().code, ErrorCode::InvalidArgument);
    EXPECT_EQ(arguments().resize(tensor_, std::array{3}).error().code, ErrorCode::InvalidArgument);
}

TEST_F(ArgumentsTest, KindsAreCheckedByTheLettersOfTheTable) {
    const auto with = [&](std::string_view kinds) {
        return check_kinds({"aten::x.out", 8, kinds, nullptr}, arguments());
    };
    EXPECT_TRUE(with("tini?ITQb").has_value());
    EXPECT_TRUE(with("onnt?IOQr").has_value());
    EXPECT_EQ(text(with("tt").error()), "aten::x.out: argument 1 must be a Tensor, is Int");
    EXPECT_EQ(text(with("tini").error()), "aten::x.out: argument 3 must be an Int, is Null");
    EXPECT_EQ(text(with("*********").error()), "aten::x.out: argument 8 is missing");
    tensor_.is_constant = true;
    EXPECT_EQ(text(with("o").error()), "aten::x.out: argument 0 is an output, but the tensor is a constant");
    EXPECT_EQ(text(with("*****O").error()), "aten::x.out: argument 5 is an output, but the tensor is a constant");
    EXPECT_EQ((Operator{"x", 8, "tini?O", nullptr}.schema_args()), 5u);
}

}  // namespace
}  // namespace talpa::runtime
