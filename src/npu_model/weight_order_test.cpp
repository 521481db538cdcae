// The order of weights in a stream (ethos-u65, section 7.3), on cases small enough to write down, and its count on
// random shapes.
#include "npu_model/weight_order.h"

#include <gtest/gtest.h>

#include "npu_model/random_operation.h"

namespace talpa::npu_model {
namespace {

// Each symbol as o, ky, kx, i in decimal digits, or -1 for padding.
std::vector<int> walk(const WeightOrder& order, unsigned core = 0) {
    std::vector<int> symbols;
    walk_weights(
        order, core,
        [&](std::uint32_t o, std::uint32_t ky, std::uint32_t kx, std::uint32_t i, std::uint32_t count) {
            for (std::uint32_t n = i; n < i + count; ++n)
                symbols.push_back(static_cast<int>(((o * 10 + ky) * 10 + kx) * 100 + n));
        },
        [&](std::uint32_t count) { symbols.insert(symbols.end(), count, -1); });
    return symbols;
}

std::vector<int> without_padding(std::vector<int> symbols) {
    std::erase(symbols, -1);
    return symbols;
}

// 1x1, 2 output and 3 input channels: 8 outputs of 8 inputs each, then three more groups of 8 inputs, since depth-first
// blocks hold 32.
TEST(WeightOrder, pads_depth_first_blocks_to_32_inputs_and_8_outputs) {
    const auto symbols = walk({.ofm_depth = 2, .ifm_depth = 3, .block_depth = 8});
    ASSERT_EQ(symbols.size(), 4u * 8 * 8);
    EXPECT_EQ(symbols[0], 0);
    EXPECT_EQ(symbols[2], 2);
    EXPECT_EQ(symbols[3], -1);
    EXPECT_EQ(symbols[8], 10000);  // output 1
    EXPECT_EQ(without_padding(symbols), (std::vector<int>{0, 1, 2, 10000, 10001, 10002}));
}

// Part-kernel: elements before input groups, four at a time, inputs only to the next multiple of 8.
TEST(WeightOrder, part_kernel_walks_elements_inside_a_group_of_8_inputs) {
    const auto symbols = walk({.ofm_depth = 1,
                               .kernel_height = 1,
                               .kernel_width = 3,
                               .ifm_depth = 9,
                               .block_depth = 8,
                               .part_kernel_first = true});
    ASSERT_EQ(symbols.size(), 2u * 4 * 8 * 8);  // 16 inputs, 4 elements
    std::vector<int> expected;
    for (int kx = 0; kx < 3; ++kx)
        for (int i = 0; i < 8; ++i) expected.push_back(kx * 100 + i);
    for (int kx = 0; kx < 3; ++kx) expected.push_back(kx * 100 + 8);
    EXPECT_EQ(without_padding(symbols), expected);
}

TEST(WeightOrder, depthwise_rounds_elements_to_4_and_has_no_input_lanes) {
    const auto symbols =
        walk({.ofm_depth = 9, .kernel_height = 3, .kernel_width = 3, .block_depth = 16, .depthwise = true});
    EXPECT_EQ(symbols.size(), 16u * 12);
    EXPECT_EQ(symbols[8], 100);  // second element, output 0
    EXPECT_EQ(symbols[8 * 12], 80000);
}

// 9 rows are sub-kernels of 8 and 1; with dilation 2 of 4, 4 and 1.
TEST(WeightOrder, cuts_large_kernels_into_sub_kernels) {
    EXPECT_EQ(walk({.kernel_height = 9, .ifm_depth = 1, .block_depth = 8, .part_kernel_first = true}).size(),
              (8u + 4) * 64);
    EXPECT_EQ(
        walk({.kernel_height = 9, .ifm_depth = 1, .block_depth = 8, .dilation_y = 2, .part_kernel_first = true}).size(),
        (4u + 4 + 4) * 64);
    EXPECT_EQ(
        walk({.kernel_height = 9, .ifm_depth = 1, .block_depth = 8, .part_kernel_first = true, .decompose_4x4 = true})
            .size(),
        (4u + 4 + 4) * 64);
}

TEST(WeightOrder, two_cores_take_turns_channel_by_channel) {
    const WeightOrder order{.ofm_depth = 5, .ifm_depth = 1, .block_depth = 16, .part_kernel_first = true, .cores = 2};
    EXPECT_EQ(without_padding(walk(order, 0)), (std::vector<int>{0, 20000, 40000}));
    EXPECT_EQ(without_padding(walk(order, 1)), (std::vector<int>{10000, 30000}));
}

TEST(WeightOrder, sixteen_bit_inputs_come_in_blocks_of_16_and_elements_in_twos) {
    EXPECT_EQ(walk({.ifm_depth = 1, .block_depth = 8, .ifm_16bit = true}).size(), 16u * 8);
    EXPECT_EQ(walk({.kernel_width = 3, .ifm_depth = 1, .block_depth = 8, .part_kernel_first = true, .ifm_16bit = true})
                  .size(),
              4u * 64);
}

TEST(WeightOrder, visits_each_weight_once_and_counts_what_it_visits) {
    testing::Random random(11);
    for (int round = 0; round < 400; ++round) {
        WeightOrder order{.ofm_depth = random.size(1, 40),
                          .kernel_height = random.size(1, 11),
                          .kernel_width = random.size(1, 11),
                          .ifm_depth = random.size(1, 50),
                          .block_depth = random.size(1, 48),
                          .dilation_y = static_cast<std::uint8_t>(random.in(1, 2)),
                          .dilation_x = static_cast<std::uint8_t>(random.in(1, 2)),
                          .depthwise = random.once_in(3),
                          .part_kernel_first = random.once_in(2),
                          .ifm_16bit = random.once_in(3),
                          .decompose_4x4 = random.once_in(4),
                          .ublock_depth = random.pick<std::uint8_t>({4, 8}),
                          .cores = random.pick<std::uint8_t>({1, 2})};
        std::vector<int> seen(order.bank_size());
        for (unsigned core = 0; core < order.cores; ++core) {
            std::uint64_t symbols = 0;
            walk_weights(
                order, core,
                [&](std::uint32_t o, std::uint32_t ky, std::uint32_t kx, std::uint32_t i, std::uint32_t count) {
                    for (std::uint32_t n = i; n < i + count; ++n)
                        ++seen.at(((std::size_t{o} * order.kernel_height + ky) * order.kernel_width + kx) *
                                      order.bank_ifm_depth() +
                                  n);
                    symbols += count;
                },
                [&](std::uint32_t count) { symbols += count; });
            ASSERT_EQ(symbols, symbol_count(order, core)) << round;
        }
        ASSERT_TRUE(std::all_of(seen.begin(), seen.end(), [](int n) { return n == 1; })) << round;
    }
}

TEST(WeightOrder, placing_refuses_weights_in_the_padding) {
    const WeightOrder order{.ofm_depth = 1, .ifm_depth = 1, .block_depth = 8, .part_kernel_first = true};
    std::vector<std::int16_t> symbols(symbol_count(order, 0)), bank(1);
    symbols[0] = 9;
    EXPECT_TRUE(place_weights(order, 0, symbols, bank));
    EXPECT_EQ(bank[0], 9);
    symbols[1] = 1;
    EXPECT_FALSE(place_weights(order, 0, symbols, bank));
}

}  // namespace
}  // namespace talpa::npu_model
