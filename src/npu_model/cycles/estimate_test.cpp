// Expected numbers are worked by hand from the rules of ethos-u65, section 8, and from what its section 8.5 says of
// them.
#include <gtest/gtest.h>

#include "npu_model/cycles/operation_cost.h"
#include "npu_model/cycles/transfer.h"

namespace talpa::npu_model {
namespace {

using npu::OpKind;

npu::FeatureMap bricks(std::uint32_t h, std::uint32_t w, std::uint32_t c, std::uint8_t region = 2) {
    npu::FeatureMap fm;
    fm.layout = npu::Layout::Nhcwb16;
    fm.region = region;
    fm.height = h, fm.width = w, fm.depth = c;
    fm.stride_y = std::int64_t{w} * ((c + 15) / 16 * 16);
    fm.stride_x = 16;
    fm.stride_c = std::int64_t{w} * 16;
    return fm;
}

npu::Operation conv(std::uint32_t size, std::uint32_t in, std::uint32_t out, std::uint32_t kernel = 1,
                    std::uint32_t block_depth = 64) {
    npu::Operation op;
    op.kind = OpKind::Conv;
    op.ifm = bricks(size, size, in);
    op.ofm = bricks(size, size, out);
    op.kernel.height = op.kernel.width = kernel;
    op.padding = {kernel / 2, kernel / 2, kernel / 2, kernel / 2};
    op.block_height = op.block_width = 8;
    op.block_depth = block_depth;
    op.weight_region = op.scale_region = 2;
    op.weights[0] = {0, 1024};
    op.scales[0] = {1024, 640};
    return op;
}

TEST(Estimate, ADeepConvolutionRunsAtThePeak) {
    // 8x8x64 blocks of 64 channels: 16 ublocks of 4 cycles, by 8 in depth, by 2 IFM blocks of 32.
    const OperationCost c = estimate(conv(64, 64, 64));
    EXPECT_EQ(c.macs, 64ull * 64 * 64 * 64);
    EXPECT_EQ(c.mac_cycles, c.macs / 256);
    EXPECT_EQ(c.weight_cycles, c.mac_cycles);
    EXPECT_EQ(c.blocks, 64u);
}

TEST(Estimate, AConvolutionOfFewChannelsIsBoundByTheOutputUnit) {
    // Section 8.5: a 1x1 convolution needs IFM/256 cycles an output, the output unit 0.25: output-bound below 64
    // channels.
    EXPECT_EQ(estimate(conv(64, 32, 64)).bound, Bound::Output);
    EXPECT_EQ(estimate(conv(64, 96, 64)).bound, Bound::Mac);
}

TEST(Estimate, AFullyConnectedLayerWaitsForItsWeights) {
    // One position a block: 32 cycles for the weights of 8 outputs and 32 inputs instead of 4 (section 8.2).
    npu::Operation op = conv(1, 256, 256);
    const OperationCost c = estimate(op);
    EXPECT_EQ(c.weight_cycles, 32 * c.macs / (8 * 32));
    EXPECT_EQ(c.mac_cycles, 4 * c.macs / (8 * 32));
    EXPECT_EQ(c.bound, Bound::Weights);
    EXPECT_GT(c.weight_cycles, c.mac_cycles);
}

TEST(Estimate, PartKernelRoundsAKernelUpToFours) {
    // 5x5 = 25 elements in 7 steps of 4: 28/25 of the MACs (section 10.4); 16 channels in two steps of 8.
    npu::Operation op = conv(16, 16, 64, 5);
    op.kernel.part_kernel_first = true;
    const OperationCost c = estimate(op);
    EXPECT_DOUBLE_EQ(static_cast<double>(c.mac_cycles) * 256 / static_cast<double>(c.macs), 28.0 / 25);
}

TEST(Estimate, DepthwiseUsesNineTwelfthsOfAnEighth) {
    npu::Operation op = conv(32, 64, 64, 3, 16);
    op.kind = OpKind::Depthwise;
    // One of the eight lanes in depth, and 9 of the 12 elements that three steps of four could do (section 8.2).
    const OperationCost c = estimate(op);
    EXPECT_EQ(c.macs, 32ull * 32 * 64 * 9);
    EXPECT_DOUBLE_EQ(static_cast<double>(c.macs) / (static_cast<double>(c.mac_cycles) * 256), 9.0 / 12 / 8);
}

TEST(Estimate, OneBlockHasNoCommandFloorButPaysForFetchAndStore) {
    npu::Operation op = conv(8, 64, 64);
    const OperationCost c = estimate(op);
    // SRAM: 32 cycles of latency and 16 bytes a cycle; the IFM block is 8x8x32, the OFM block 8x8x64.
    EXPECT_EQ(c.fill_cycles, 32u + 8 * 8 * 32 / 16);
    EXPECT_EQ(c.drain_cycles, 32u + 8 * 8 * 64 / 16);
    EXPECT_EQ(c.npu_cycles, c.mac_cycles + c.output_cycles + c.fill_cycles + c.drain_cycles);
}

TEST(Estimate, WeightsAreReadAgainForEveryBlockInHeightAndWidth) {
    npu::Operation op = conv(64, 64, 64);
    op.weight_region = op.scale_region = 0;
    EXPECT_EQ(estimate(op).in(MemoryArea::Dram).read_bytes, 64u * (1024 + 640));
    op.block_height = op.block_width = 32;
    EXPECT_EQ(estimate(op).in(MemoryArea::Dram).read_bytes, 4u * (1024 + 640));
}

TEST(Estimate, OverlappingWindowsAreFetchedTwiceAndBordersNotAtAll) {
    // 16 rows in two blocks of 8 with a 3x3 kernel: 9 + 9 rows and columns, in bricks.
    npu::Operation op = conv(16, 16, 64, 3);
    op.weights[0] = op.scales[0] = {};
    EXPECT_EQ(estimate(op).in(MemoryArea::Sram).read_bytes, 18u * 18 * 16);
    op.kernel.stride_x = op.kernel.stride_y = 2;
    op.ofm = bricks(8, 8, 64);
    EXPECT_EQ(estimate(op).in(MemoryArea::Sram).read_bytes, 16u * 16 * 16);
}

TEST(Estimate, ShortRunsCostWholeBursts) {
    const SystemConfig& config = default_system_config();
    EXPECT_EQ(bus_bytes(300, 3, config.timing(MemoryArea::Dram)), 300u * 128 / 3);
    EXPECT_EQ(bus_bytes(300, 3, config.timing(MemoryArea::Sram)), 300u * 32 / 3);
    EXPECT_EQ(bus_bytes(300, 128, config.timing(MemoryArea::Dram)), 300u);
}

TEST(Estimate, ACopyIsLatencyAndTheSlowerSide) {
    npu::Operation op;
    op.kind = OpKind::Dma;
    op.dma.src_region = 0;
    op.dma.dst_region = 2;
    op.dma.length = 3750;
    const OperationCost c = estimate(op);
    EXPECT_EQ(c.cycles, 500u + 1000);  // 3.75 bytes a cycle
    EXPECT_EQ(c.in(MemoryArea::Dram).read_bytes, 3750u);
    EXPECT_EQ(c.in(MemoryArea::Sram).write_bytes, 3750u);
    EXPECT_EQ(estimate(op, *system_config("ethos-u65-256", "Client_Server", "Dedicated_Sram")).cycles, 500u + 312);
}

TEST(Estimate, AddsCostThreeQuartersOfACycleAndTablesOne) {
    npu::Operation op;
    op.kind = OpKind::Add;
    op.ifm = op.ifm2 = op.ofm = bricks(16, 16, 32);
    op.block_height = op.block_width = 16;
    op.block_depth = 32;
    EXPECT_EQ(estimate(op).npu_cycles, 16u * 16 * 32 * 3 / 4);
    op.activation.function = npu::Activation::Function::Lut;
    EXPECT_EQ(estimate(op).npu_cycles, 16u * 16 * 32);
}

TEST(Estimate, TwoCoresHalveMacAndOutput) {
    const auto one = estimate(conv(64, 64, 64));
    const auto two = estimate(conv(64, 64, 64), *system_config("ethos-u65-512", "High_End", "Dedicated_Sram"));
    EXPECT_EQ(two.mac_cycles, one.mac_cycles / 2);
    EXPECT_EQ(two.output_cycles, one.output_cycles / 2);
}

TEST(Estimate, WaitsCostNothing) {
    npu::Operation op;
    op.kind = OpKind::DmaWait;
    EXPECT_EQ(estimate(op).cycles, 0u);
    EXPECT_EQ(estimate(op).bound, Bound::None);
}

TEST(Estimate, ATransposingCopyComputesNothing) {
    npu::Operation op;
    op.kind = OpKind::AvgPool;
    op.ifm.height = op.ofm.height = 3;
    op.ifm.width = op.ofm.width = 224;
    op.ifm.depth = op.ofm.depth = 1;
    op.ifm.stride_y = 224, op.ifm.stride_x = 1;
    op.ofm.stride_y = 224, op.ofm.stride_x = 1;
    op.block_height = 2, op.block_width = 46, op.block_depth = 8;
    EXPECT_FALSE(is_transposing_copy(op));
    EXPECT_EQ(estimate(op).macs, 672u);
    op.ofm.stride_y = 1, op.ofm.stride_x = 3;
    EXPECT_TRUE(is_transposing_copy(op));
    EXPECT_EQ(estimate(op).macs, 0u);
}

}  // namespace
}  // namespace talpa::npu_model
