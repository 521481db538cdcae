// The output unit: clamp rules, tables, tanh and sigmoid (ethos-u65, sections 5.8, 5.9 and 6.2).
#include "npu_model/output.h"

#include <gtest/gtest.h>

#include <cmath>

#include "npu_model/one_operation_for_test.h"

namespace talpa::npu_model {
namespace {

using npu::OpKind;
using testing::dense_map;
using testing::kInt16;
using testing::kInt32;
using testing::kInt8;
using testing::kUint8;
using testing::OneOperation;
using Values = std::vector<std::int32_t>;

// A 1x1 average pool that scales by one: what compilers use to pass values through the output unit.
OneOperation copy(npu::ElementType from, npu::ElementType to, std::uint32_t count) {
    OneOperation o(OpKind::AvgPool);
    o.op.ifm = dense_map(1, 1, count, from);
    o.op.ofm = dense_map(1, 1, count, to);
    return o;
}

TEST(Output, adds_the_zero_point_then_clamps_to_the_ofm_type) {
    OneOperation o = copy(kInt16, kInt8, 4);
    o.op.ofm.zero_point = 10;
    EXPECT_EQ(o.run({-300, -5, 117, 118}), (Values{-128, 5, 127, 127}));
}

TEST(Output, clamps_to_min_and_max_in_the_sign_of_the_range) {
    OneOperation o = copy(kInt16, kInt8, 4);
    o.op.activation.raw_min = static_cast<std::uint16_t>(-20);
    o.op.activation.raw_max = 6;
    EXPECT_EQ(o.run({-100, -20, 0, 7}), (Values{-20, -20, 0, 6}));
    OneOperation u = copy(kInt16, kUint8, 3);
    u.op.activation.raw_min = 3;
    u.op.activation.raw_max = 0xFFFF;  // unsigned here: no limit
    EXPECT_EQ(u.run({-9, 100, 300}), (Values{3, 100, 255}));
}

TEST(Output, a_narrower_clip_range_wins_over_the_type) {
    OneOperation o = copy(kInt16, kInt16, 3);
    o.op.activation.clip_range = 3;  // int8
    EXPECT_EQ(o.run({-1000, 5, 1000}), (Values{-128, 5, 127}));
    o.op.activation.clip_range = 2;  // uint8
    o.op.activation.raw_min = 0;
    EXPECT_EQ(o.run({-1000, 5, 1000}), (Values{0, 5, 255}));
}

TEST(Output, thirty_two_bits_ignore_min_and_max_and_saturate) {
    OneOperation o(OpKind::Mul);
    o.op.ifm = o.op.ifm2 = dense_map(1, 1, 3, kInt32);
    o.op.ofm = dense_map(1, 1, 3, kInt32);
    o.op.activation.raw_min = 0;
    o.op.activation.raw_max = 10;
    EXPECT_EQ(o.run({1 << 20, -(1 << 20), -300}, {1 << 20, 1 << 20, 1}), (Values{INT32_MAX, INT32_MIN, -300}));
    ASSERT_EQ(o.findings.all().size(), 1u);
    EXPECT_EQ(o.findings.all()[0].kind, Finding::Kind::ResultOverflow);
    EXPECT_EQ(o.findings.all()[0].count, 2u);
}

TEST(Output, min_above_max_gives_max) {
    OneOperation o = copy(kInt8, kInt8, 2);
    o.op.activation.raw_min = 10;
    o.op.activation.raw_max = 5;
    EXPECT_EQ(o.run({0, 20}), (Values{5, 5}));
}

TEST(Output, the_8_bit_table_is_looked_up_after_the_clamp) {
    OneOperation o = copy(kInt8, kInt8, 3);
    o.op.activation.function = npu::Activation::Function::Lut;
    o.op.activation.raw_max = 100;
    for (int i = 0; i < 256; ++i) o.lut.push_back(static_cast<std::uint8_t>(255 - i));
    // Index t + 128: -128 -> entry 0 = 255 = -1; 0 -> entry 128 = 127; 127 is clamped to 100 -> entry 228 = 27.
    EXPECT_EQ(o.run({-128, 0, 127}), (Values{-1, 127, 27}));
}

TEST(Output, the_table_of_an_unsigned_ofm_starts_at_zero) {
    OneOperation o = copy(kUint8, kUint8, 2);
    o.op.activation.function = npu::Activation::Function::Lut;
    o.op.activation.raw_min = 0;
    for (int i = 0; i < 256; ++i) o.lut.push_back(static_cast<std::uint8_t>(i ^ 0x55));
    EXPECT_EQ(o.run({0, 255}), (Values{0x55, 0xAA}));
}

TEST(Output, the_32_bit_table_holds_words) {
    OneOperation o = copy(kInt8, kInt32, 2);
    o.op.activation.function = npu::Activation::Function::Lut;
    o.op.activation.clip_range = 3;
    o.lut.resize(1024);
    store_le(o.lut.data(), std::uint32_t{0x80000001});
    store_le(o.lut.data() + 4 * 130, std::uint32_t{123456789});
    EXPECT_EQ(o.run({-128, 2}), (Values{-0x7FFFFFFF, 123456789}));
}

// Sixteen bits: entry (t + 32768) >> 7, base plus slope * (t & 127) / 128, rounded half up.
TEST(Output, the_16_bit_table_interpolates) {
    OneOperation o = copy(kInt16, kInt16, 4);
    o.op.activation.function = npu::Activation::Function::Lut;
    o.lut.resize(2048);
    const auto entry = [&](std::size_t i, int base, int slope) {
        store_le(o.lut.data() + 4 * i, static_cast<std::uint16_t>(base));
        store_le(o.lut.data() + 4 * i + 2, static_cast<std::uint16_t>(slope));
    };
    entry(0, -500, 128);
    entry(256, 1000, -64);  // t 0..127
    entry(511, 32000, 128);
    EXPECT_EQ(o.run({-32768, 1, 127, 32767}), (Values{-500, 1000, 937, 32127}));  // -0.5 rounds to 0; -63.5 to -63
}

TEST(Output, indexes_beyond_a_table_wrap_and_are_reported) {
    OneOperation o = copy(kInt16, kInt8, 2);
    o.op.activation.function = npu::Activation::Function::Lut;
    o.op.activation.clip_range = 2;  // 0..255, index up to 383
    o.op.activation.raw_min = 0;
    for (int i = 0; i < 256; ++i) o.lut.push_back(static_cast<std::uint8_t>(i));
    EXPECT_EQ(o.run({255, 0}), (Values{127, -128}));
    ASSERT_EQ(o.findings.all().size(), 1u);
    EXPECT_EQ(o.findings.all()[0].kind, Finding::Kind::LutIndexOutOfRange);
}

// Section 5.9: within 1 of the real functions, which are the outside authority here; units of 1/(3*4096).
TEST(Output, sigmoid_and_tanh_follow_the_real_functions) {
    for (int x = -32768; x <= 32767; ++x) {
        const double real = x / (3.0 * 4096.0);
        ASSERT_NEAR(sigmoid_q15(x), std::round(32768.0 / (1.0 + std::exp(-real))), 1.0) << x;
        ASSERT_NEAR(tanh_q15(x), std::round(32768.0 * std::tanh(real)), 1.0) << x;
    }
}

TEST(Output, sigmoid_and_tanh_at_points_of_the_published_formula) {
    EXPECT_EQ(sigmoid_q15(0), 16384);
    EXPECT_EQ(tanh_q15(0), 0);
    EXPECT_EQ(sigmoid_q15(512), (33451 * 512 + 512) >> 10);             // S[1] = 65536/(1+exp(-1/24)) = 33450.6
    EXPECT_EQ(tanh_q15(-256), (-(33451 << 8) + (1 << 23) + 127) >> 8);  // odd, but for the rounding
    EXPECT_EQ(sigmoid_q15(1 << 20), 32767);
    EXPECT_EQ(sigmoid_q15(-(1 << 20)), 1);
    EXPECT_EQ(tanh_q15(1 << 20), 32767);
    EXPECT_EQ(tanh_q15(-(1 << 20)), -32767);
    EXPECT_EQ(tanh_q15(INT64_MIN), -32767);
}

TEST(Output, tanh_comes_before_the_zero_point_and_the_clamp) {
    OneOperation o = copy(kInt16, kInt16, 1);
    o.op.activation.function = npu::Activation::Function::Tanh;
    o.op.ofm.zero_point = 100;
    EXPECT_EQ(o.run({0}), (Values{100}));
}

}  // namespace
}  // namespace talpa::npu_model
