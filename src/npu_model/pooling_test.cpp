// Pooling rules of ethos-u65, sections 5.4 and 5.5, and the sum over channels.
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
using testing::OneOperation;
using Values = std::vector<std::int32_t>;

OneOperation pool(OpKind kind, std::uint32_t in_h, std::uint32_t in_w, std::uint32_t out_h, std::uint32_t out_w,
                  std::uint32_t k) {
    OneOperation o(kind);
    o.op.ifm = dense_map(in_h, in_w, 1, kInt8);
    o.op.ofm = dense_map(out_h, out_w, 1, kInt8);
    o.op.kernel.height = o.op.kernel.width = k;
    return o;
}

TEST(MaxPool, never_lets_the_padding_win) {
    OneOperation o = pool(OpKind::MaxPool, 2, 2, 2, 2, 3);
    o.op.padding = {1, 1, 1, 1};
    EXPECT_EQ(o.run({-100, -90, -120, -110}), (Values{-90, -90, -90, -90}));
    o.op.padding = {2, 2, 0, 0};  // the first window sees one element
    EXPECT_EQ(o.run({-100, -90, -120, -110}), (Values{-100, -90, -100, -90}));
}

TEST(MaxPool, passes_raw_values_whatever_the_zero_points) {
    OneOperation o = pool(OpKind::MaxPool, 1, 1, 1, 1, 1);
    o.op.ifm.zero_point = 20;
    o.op.ofm.zero_point = -7;
    EXPECT_EQ(o.run({42}), (Values{42}));
}

// Windows of n elements at a time: exact halves go away from zero, for both signs, both roundings, whatever n.
TEST(AveragePool, halves_round_away_from_zero_in_padded_pools) {
    for (const auto rounding : {npu::Rounding::Natural, npu::Rounding::Tfl})
        for (std::uint32_t n = 1; n <= 64; ++n)
            for (const int wanted : {-3, -1, 0, 1, 2}) {
                OneOperation o = pool(OpKind::AvgPool, 1, n, 1, 1, 1);
                o.op.ofm_rounding = rounding;
                o.op.kernel.width = n + 1;
                o.op.padding = {0, 1, 0, 0};  // any padding: each window by its own count
                // n values whose mean is wanted + one half, where n is even; else just above or below.
                Values values(n, wanted);
                for (std::uint32_t i = 0; i < n / 2; ++i) ++values[i];
                double mean = 0;
                for (const int v : values) mean += v;
                mean /= n;
                EXPECT_EQ(o.run(values), Values{static_cast<int>(std::lround(mean))})
                    << n << " elements of mean " << mean;  // lround: half away
            }
}

TEST(AveragePool, does_not_count_the_padding) {
    OneOperation o = pool(OpKind::AvgPool, 2, 2, 2, 2, 2);
    o.op.padding = {1, 1, 0, 0};
    EXPECT_EQ(o.run({10, 20, 30, 40}), (Values{10, 15, 20, 25}));
}

TEST(AveragePool, uses_the_scale_of_the_program_only_without_padding) {
    OneOperation o = pool(OpKind::AvgPool, 2, 2, 1, 1, 2);
    o.op.ofm_scale = {1, 0};
    EXPECT_EQ(o.run({1, 2, 3, 4}), (Values{10}));
    o.op.ofm_global_scale = false;
    EXPECT_EQ(o.run({1, 2, 3, 4}), (Values{3}));  // 2.5
    o.op.ofm_global_scale = true;
    o.op.kernel.height = 3;
    o.op.padding.bottom = 1;
    EXPECT_EQ(o.run({1, 2, 3, 4}), (Values{3}));
}

TEST(AveragePool, takes_the_zero_point_off_and_puts_the_other_on) {
    OneOperation o = pool(OpKind::AvgPool, 1, 2, 1, 1, 1);
    o.op.kernel.width = 2;
    o.op.ofm_scale = {0x80000001u >> 1, 31};  // a half
    o.op.ifm.zero_point = -10;
    o.op.ofm.zero_point = 5;
    EXPECT_EQ(o.run({0, 4}), (Values{17}));
}

TEST(AveragePool, of_a_window_that_is_all_padding_is_the_zero_point) {
    OneOperation o = pool(OpKind::AvgPool, 1, 1, 2, 1, 1);
    o.op.padding.top = 1;
    o.op.ofm.zero_point = 9;
    EXPECT_EQ(o.run({50}), (Values{9, 59}));
}

TEST(ReduceSum, adds_channels_and_scales) {
    OneOperation o(OpKind::ReduceSum);
    o.op.ifm = dense_map(1, 2, 3, kInt8, 1);
    o.op.ofm = dense_map(1, 2, 1, kInt32);
    o.op.ofm_scale = {3, 0};
    EXPECT_EQ(o.run({1, 2, 3, 100, 100, 100}), (Values{9, 891}));
}

TEST(ReduceSum, keeps_the_exact_sum_of_32_bit_inputs_and_saturates_on_store) {
    OneOperation o(OpKind::ReduceSum);
    o.op.ifm = dense_map(1, 1, 2, kInt32);
    o.op.ofm = dense_map(1, 1, 1, kInt32);
    EXPECT_EQ(o.run({INT32_MAX, INT32_MAX}), (Values{INT32_MAX}));
    o.op.ofm_scale = {1, 1};
    EXPECT_EQ(o.run({INT32_MAX, INT32_MAX}), (Values{INT32_MAX}));
    EXPECT_EQ(o.findings.all().front().kind, Finding::Kind::AccumulatorOverflow);
}

}  // namespace
}  // namespace talpa::npu_model
