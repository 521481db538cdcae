// Elementwise rules of ethos-u65, sections 4.3, 5.6 and 5.7, on values small enough to check by hand.
#include <gtest/gtest.h>

#include "npu_model/one_operation_for_test.h"

namespace talpa::npu_model {
namespace {

using npu::OperandScaling;
using npu::OpKind;
using npu::Rounding;
using testing::dense_map;
using testing::kInt16;
using testing::kInt32;
using testing::kInt8;
using testing::OneOperation;
using Values = std::vector<std::int32_t>;

OneOperation binary(OpKind kind, npu::ElementType type, std::uint32_t count) {
    OneOperation o(kind);
    o.op.ifm = o.op.ifm2 = o.op.ofm = dense_map(1, 1, count, type);
    return o;
}

TEST(Elementwise, add_takes_both_zero_points_off) {
    OneOperation o = binary(OpKind::Add, kInt8, 2);
    o.op.ifm.zero_point = 10;
    o.op.ifm2.zero_point = -3;
    o.op.ofm.zero_point = 1;
    EXPECT_EQ(o.run({10, 20}, {-3, 4}), (Values{1, 18}));
}

TEST(Elementwise, reversed_operands_swap_with_their_zero_points) {
    OneOperation o = binary(OpKind::Sub, kInt8, 1);
    o.op.ifm.zero_point = 1;
    o.op.ifm2.zero_point = 2;
    EXPECT_EQ(o.run({11}, {32}), (Values{-20}));
    o.op.operands_reversed = true;
    EXPECT_EQ(o.run({11}, {32}), (Values{20}));
}

TEST(Elementwise, broadcasts_in_each_direction) {
    OneOperation o(OpKind::Add);
    o.op.ifm = o.op.ofm = dense_map(2, 2, 2, kInt8);
    const Values in{1, 2, 3, 4, 5, 6, 7, 8};
    o.op.ifm2 = dense_map(1, 2, 2, kInt8);
    EXPECT_EQ(o.run(in, {10, 20, 30, 40}), (Values{11, 22, 33, 44, 15, 26, 37, 48}));
    o.op.ifm2 = dense_map(2, 1, 2, kInt8);
    EXPECT_EQ(o.run(in, {10, 20, 30, 40}), (Values{11, 22, 13, 24, 35, 46, 37, 48}));
    o.op.ifm2 = dense_map(2, 2, 1, kInt8);
    EXPECT_EQ(o.run(in, {10, 20, 30, 40}), (Values{11, 12, 23, 24, 35, 36, 47, 48}));
}

TEST(Elementwise, a_scalar_keeps_its_zero_point) {
    OneOperation o = binary(OpKind::Mul, kInt8, 2);
    o.op.ifm2_is_scalar = true;
    o.op.ifm2_scalar = 7;
    o.op.ifm2.zero_point = 5;
    EXPECT_EQ(o.run({3, -4}), (Values{6, -8}));
}

// Modes 1 and 2 (section 5.6), 8 bits, P = 20: the one operand becomes A << 20, times 2^30 >> 12 + 20: A * 2^18, which
// is half of what the other becomes, B << 19. The output scale takes 2^19 off again: 8/2 + 3.
TEST(Elementwise, operand_scaling_puts_one_operand_through_opa_scale) {
    OneOperation o = binary(OpKind::Add, kInt8, 1);
    o.op.opa_scale = {1u << 30, 12};
    o.op.ofm_scale = {1, 19};
    o.op.operand_scaling = OperandScaling::Opa32;
    EXPECT_EQ(o.run({8}, {3}), (Values{7}));
    o.op.operand_scaling = OperandScaling::Opb32;
    EXPECT_EQ(o.run({8}, {2}), (Values{9}));
}

TEST(Elementwise, subtraction_in_mode_2_scales_the_second_operand) {
    OneOperation o = binary(OpKind::Sub, kInt16, 1);
    o.op.opa_scale = {1u << 30, 16};  // P = 15: B << 15, times 2^30 >> 31 = B * 2^14: the same as A << 14
    o.op.ofm_scale = {1, 14};
    o.op.operand_scaling = OperandScaling::Opb32;
    o.op.opb_scale = 12345;  // stale, and not used
    EXPECT_EQ(o.run({1000}, {300}), (Values{700}));
}

// The rule that only 8-bit mode 0 under TFL has: one rounding, half away from zero, also above shift 31.
TEST(Elementwise, eight_bit_mode_0_under_tfl_rounds_once) {
    OneOperation o = binary(OpKind::Add, kInt8, 4);
    o.op.ofm_rounding = Rounding::Tfl;
    o.op.ofm_scale = {1u << 30, 32};  // a quarter
    EXPECT_EQ(o.run({1, 2, -2, -1}, {0, 0, 0, 0}), (Values{0, 1, -1, 0}));
    OneOperation wide = binary(OpKind::Add, kInt16, 4);
    wide.op.ofm_rounding = Rounding::Tfl;
    wide.op.ofm_scale = {1u << 30, 32};
    EXPECT_EQ(wide.run({1, 2, -2, -1}, {0, 0, 0, 0}), (Values{1, 1, -1, 0}));  // two steps: 0.25 becomes 0.5, then 1
}

TEST(Elementwise, min_and_max_pass_raw_values) {
    OneOperation o = binary(OpKind::Min, kInt8, 2);
    o.op.ifm.zero_point = 50;
    o.op.ofm.zero_point = 3;
    EXPECT_EQ(o.run({-5, 9}, {4, 1}), (Values{-5, 1}));
    o.op.kind = OpKind::Max;
    EXPECT_EQ(o.run({-5, 9}, {4, 1}), (Values{4, 9}));
}

TEST(Elementwise, leaky_relu_scales_negatives_only) {
    OneOperation o = binary(OpKind::Lrelu, kInt16, 3);
    o.op.ifm.zero_point = 100;
    o.op.ofm_scale = {1u << 30, 31};
    EXPECT_EQ(o.run({300, 100, 0}), (Values{200, 0, -50}));
}

TEST(Elementwise, abs_scales_narrow_inputs_only) {
    OneOperation o = binary(OpKind::Abs, kInt8, 2);
    o.op.ofm_scale = {3, 1};
    EXPECT_EQ(o.run({-128, 10}), (Values{127, 15}));
    OneOperation wide = binary(OpKind::Abs, kInt32, 2);
    wide.op.ofm_scale = {3, 1};
    EXPECT_EQ(wide.run({-7, INT32_MIN}), (Values{7, INT32_MAX}));
}

TEST(Elementwise, thirty_two_bit_mul_uses_the_shift_and_not_the_multiplier) {
    OneOperation o = binary(OpKind::Mul, kInt32, 2);
    o.op.ofm_scale = {1u << 30, 31};                                               // what softmax programs
    EXPECT_EQ(o.run({1 << 30, -(1 << 30)}, {1 << 30, 3}), (Values{1 << 29, -1}));  // -1.5 rounds half up
}

TEST(Elementwise, clz_counts_the_32_bit_pattern) {
    OneOperation o = binary(OpKind::Clz, kInt32, 4);
    EXPECT_EQ(o.run({0, 1, -1, 0x00010000}), (Values{32, 31, 0, 15}));
}

TEST(Elementwise, shift_right_always_rounds) {
    OneOperation o = binary(OpKind::Shr, kInt32, 4);
    EXPECT_EQ(o.run({5, -5, 6, 1}, {1, 1, 2, 31}), (Values{3, -2, 2, 0}));
}

TEST(Elementwise, shift_left_wraps) {
    OneOperation o = binary(OpKind::Shl, kInt32, 3);
    EXPECT_EQ(o.run({1, 3, -1}, {31, 31, 4}), (Values{INT32_MIN, INT32_MIN, -16}));
    EXPECT_TRUE(o.findings.all().empty());
    o.run({1, 1, 1}, {32, -1, 0});
    ASSERT_EQ(o.findings.all().size(), 1u);
    EXPECT_EQ(o.findings.all()[0].count, 2u);
}

TEST(Elementwise, may_write_over_its_input) {
    OneOperation o(OpKind::Add);
    o.op.ifm = o.op.ofm = dense_map(1, 1, 3, kInt8);
    o.op.ifm2 = dense_map(1, 1, 1, kInt8);
    o.op.ifm.base[0] = 2u << 16;  // where run() puts the OFM
    EXPECT_EQ(o.run({1, 2, 3}, {1}), (Values{2, 3, 4}));
}

}  // namespace
}  // namespace talpa::npu_model
