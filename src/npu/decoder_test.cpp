#include "npu/decoder.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace talpa::npu {
namespace {

std::uint32_t cmd0(auto code, unsigned parameter) {
    return static_cast<std::uint32_t>(code) | (parameter << 16);
}

TEST(Decoder, KeepsRegistersAcrossOperations) {
    const std::vector<std::uint32_t> words{cmd0(Cmd0::OFM_HEIGHT_M1, 3),
                                           cmd0(Cmd0::OFM_WIDTH_M1, 4),
                                           cmd0(Cmd0::OFM_DEPTH_M1, 7),
                                           cmd0(Cmd0::IFM_DEPTH_M1, 7),
                                           cmd0(Op::POOL, 0),
                                           cmd0(Cmd0::OFM_WIDTH_M1, 8),
                                           cmd0(Op::POOL, 1),
                                           cmd0(Op::STOP, 0xFFFF)};
    Decoder decoder{words};
    const auto first = decoder.next().value().value();
    EXPECT_EQ(first.kind, OpKind::MaxPool);
    EXPECT_EQ(first.ofm.width, 5u);
    const auto second = decoder.next().value().value();
    EXPECT_EQ(second.kind, OpKind::AvgPool);
    EXPECT_EQ(second.ofm.height, 4u);
    EXPECT_EQ(second.ofm.width, 9u);
    EXPECT_EQ(second.ifm.depth, 8u);
    EXPECT_EQ(decoder.next().value().value().kind, OpKind::Stop);
    EXPECT_FALSE(decoder.next().value().has_value());
}

TEST(Decoder, StreamWithoutStopIsAnError) {
    const std::vector<std::uint32_t> words{cmd0(Op::DMA_WAIT, 0)};
    Decoder decoder{words};
    ASSERT_TRUE(decoder.next());
    EXPECT_EQ(decoder.next().error().code, ErrorCode::CommandStream);
}

TEST(Decoder, MalformedWordsAreRefused) {
    for (const std::uint32_t word : {0x00008000u, 0x0000C002u, 0x00000400u, 0x00000007u, 0x000001FFu, 0x00004020u}) {
        const std::vector<std::uint32_t> words{word};
        CommandReader reader{words};
        EXPECT_FALSE(reader.next()) << std::hex << word;
    }
}

TEST(Decoder, StridesAreSignedFortyBits) {
    const Command c{0, static_cast<std::uint16_t>(Cmd1::OFM_STRIDE_Y), true, 0xFF, 0xFFFFFFF0};
    EXPECT_EQ(c.signed_address(), -16);
    EXPECT_EQ(c.address(), 0xFFFFFFFFF0ull);
}

// A register file for one window operation of 4x5 outputs, 3x3 kernel, 16 channels; tests change what they are about.
class Resolve : public ::testing::Test {
  protected:
    RegisterState state;

    void SetUp() override {
        for (const auto& [code, value] : {std::pair(Cmd0::OFM_HEIGHT_M1, 3),
                                          {Cmd0::OFM_WIDTH_M1, 4},
                                          {Cmd0::OFM_DEPTH_M1, 15},
                                          {Cmd0::IFM_DEPTH_M1, 15},
                                          {Cmd0::KERNEL_HEIGHT_M1, 2},
                                          {Cmd0::KERNEL_WIDTH_M1, 2}})
            set(code, static_cast<unsigned>(value));
    }
    void set(Cmd0 code, unsigned value) {
        state.apply({0, static_cast<std::uint16_t>(code), false, static_cast<std::uint16_t>(value), 0});
    }
    void set(Cmd1 code, std::uint32_t payload, unsigned parameter = 0) {
        state.apply({0, static_cast<std::uint16_t>(code), true, static_cast<std::uint16_t>(parameter), payload});
    }
    Result<Operation> resolve(Op code, unsigned parameter = 0) const {
        return state.resolve({12, static_cast<std::uint16_t>(code), false, static_cast<std::uint16_t>(parameter), 0});
    }
    Operation resolved(Op code, unsigned parameter = 0) const { return resolve(code, parameter).value(); }
    std::string complaint(Op code, unsigned parameter = 0) const {
        const auto op = resolve(code, parameter);
        if (op) return "resolved";
        std::array<char, 256> text;
        EXPECT_EQ(op.error().code, ErrorCode::CommandStream);
        return std::string(op.error().render(text));
    }
};

TEST_F(Resolve, WhatIsReadFollowsFromTheWindow) {
    EXPECT_EQ(resolved(Op::CONV).ifm.height, 6u);
    EXPECT_EQ(resolved(Op::CONV).ifm.width, 7u);
    set(Cmd0::KERNEL_STRIDE, 0x1B);  // stride 2x2, dilation 2x2: the extent 3 is a kernel of 2
    EXPECT_EQ(resolved(Op::CONV).kernel.height, 2u);
    EXPECT_EQ(resolved(Op::CONV).ifm.height, 9u);
    set(Cmd0::IFM_PAD_TOP, 1);
    set(Cmd0::IFM_PAD_LEFT, 1);
    set(Cmd0::IFM_PAD_RIGHT, 2);
    EXPECT_EQ(resolved(Op::CONV).ifm.height, 8u);
    EXPECT_EQ(resolved(Op::CONV).ifm.width, 8u);
    set(Cmd0::IFM_UPSCALE, 2);
    EXPECT_EQ(resolved(Op::CONV).ifm.height, 4u) << "half of the upscaled grid";
    EXPECT_EQ(resolved(Op::CONV).upscale, Upscale::Zeros);
}

TEST_F(Resolve, StridesAboveTwoUseTheExtensionBits) {
    set(Cmd0::KERNEL_STRIDE, 0x0040 | 0x0200 | 2);  // x: 0 + 2 * 1, y: 1 + 2 * 1
    const auto k = resolved(Op::CONV).kernel;
    EXPECT_EQ(k.stride_x, 3);
    EXPECT_EQ(k.stride_y, 4);
    EXPECT_FALSE(k.part_kernel_first);
}

TEST_F(Resolve, PrecisionBitsStandAtDifferentPlacesForInputAndOutput) {
    set(Cmd0::IFM_PRECISION, 0x0045);  // int16 bricks
    set(Cmd0::OFM_PRECISION, 0x8105);  // int32, one scale, natural
    set(Cmd1::OFM_SCALE, 0x80000001, 31);
    set(Cmd0::IFM_ZERO_POINT, 0xFFFF);
    const auto op = resolved(Op::POOL, 1);
    EXPECT_EQ(op.ifm.type, (ElementType{2, true}));
    EXPECT_EQ(op.ifm.layout, Layout::Nhcwb16);
    EXPECT_EQ(op.ifm.zero_point, -1);
    EXPECT_EQ(op.ofm.type, (ElementType{4, true}));
    EXPECT_EQ(op.ofm_rounding, Rounding::Natural);
    EXPECT_TRUE(op.ofm_global_scale);
    EXPECT_EQ(op.ofm_scale, (Scale{0x80000001, 31}));
    set(Cmd0::IFM_PRECISION, 0);
    EXPECT_EQ(resolved(Op::POOL, 1).ifm.zero_point, 65535) << "unsigned types have unsigned zero points";
}

TEST_F(Resolve, ElementwiseTakesItsSizesFromTheOutput) {
    set(Cmd0::IFM_DEPTH_M1, 3);
    set(Cmd0::IFM2_BROADCAST, 0x45);  // H and C, reversed
    set(Cmd0::IFM2_PRECISION, 1);
    const auto op = resolved(Op::ELEMENTWISE, 2);
    EXPECT_EQ(op.kind, OpKind::Sub);
    EXPECT_EQ(op.ifm.depth, 16u);
    EXPECT_EQ(op.ifm2.height, 1u);
    EXPECT_EQ(op.ifm2.width, 5u);
    EXPECT_EQ(op.ifm2.depth, 1u);
    EXPECT_TRUE(op.operands_reversed);
    set(Cmd0::IFM2_BROADCAST, 0x80);
    set(Cmd0::IFM2_SCALAR, 0x00FE);
    EXPECT_EQ(resolved(Op::ELEMENTWISE, 2).ifm2_scalar, -2) << "eight bits, signed";
    set(Cmd0::IFM2_PRECISION, 5);
    EXPECT_EQ(resolved(Op::ELEMENTWISE, 2).ifm2_scalar, 254);
}

TEST_F(Resolve, EachSideOfADmaHasItsOwnStrides) {
    set(Cmd0::DMA0_SRC_REGION, 0);
    set(Cmd0::DMA0_DST_REGION, 0x403);
    set(Cmd0::DMA0_SIZE0, 4);
    set(Cmd0::DMA0_SIZE1, 2);
    set(Cmd1::DMA0_LEN, 16, 1);
    set(Cmd1::DMA0_SKIP0, 0xFFFFFFFF, 0xFF);
    const auto dma = resolved(Op::DMA_START).dma;
    EXPECT_EQ(dma.dst_region, 3);
    EXPECT_EQ(dma.dst_stride_mode, 2);
    EXPECT_EQ(dma.src_stride_mode, 0);
    EXPECT_EQ(dma.dimensions(), 2u);
    EXPECT_EQ(dma.length, 0x100000010u);
    EXPECT_EQ(dma.skip0, -1);
    set(Cmd0::DMA0_DST_REGION, 0x103);  // as compilers write it
    EXPECT_TRUE(resolved(Op::DMA_START).dma.dst_internal);
    EXPECT_EQ(resolved(Op::DMA_START).dma.size0, 0u) << "rows mean nothing in one dimension";
}

TEST_F(Resolve, ReservedValuesAreRefusedByName) {
    const auto with = [&](Cmd0 code, unsigned value, Op op = Op::CONV) {
        const RegisterState before = state;
        set(code, value);
        const std::string text = complaint(op);
        state = before;
        return text;
    };
    EXPECT_EQ(with(Cmd0::IFM_REGION, 8), "command stream offset 12: IFM_REGION has the reserved value 8");
    EXPECT_EQ(with(Cmd0::OFM_REGION, 8), "command stream offset 12: OFM_REGION has the reserved value 8");
    EXPECT_EQ(with(Cmd0::WEIGHT_REGION, 9), "command stream offset 12: WEIGHT_REGION has the reserved value 9");
    EXPECT_EQ(with(Cmd0::SCALE_REGION, 9), "command stream offset 12: SCALE_REGION has the reserved value 9");
    EXPECT_EQ(with(Cmd0::DMA0_SRC_REGION, 8, Op::DMA_START),
              "command stream offset 12: DMA0_SRC_REGION has the reserved value 8");
    EXPECT_EQ(with(Cmd0::DMA0_DST_REGION, 0x600, Op::DMA_START),
              "command stream offset 12: the stride mode of the DMA has the reserved value 3");
    EXPECT_EQ(with(Cmd0::PARALLEL_MODE, 2), "command stream offset 12: PARALLEL_MODE has the reserved value 2");
    EXPECT_EQ(with(Cmd0::ACC_FORMAT, 3), "command stream offset 12: ACC_FORMAT has the reserved value 3");
    EXPECT_EQ(with(Cmd0::IFM_UPSCALE, 3), "command stream offset 12: IFM_UPSCALE has the reserved value 3");
    EXPECT_EQ(with(Cmd0::ACTIVATION, 5),
              "command stream offset 12: the function of ACTIVATION has the reserved value 5");
    EXPECT_EQ(with(Cmd0::ACTIVATION, 0x1000),
              "command stream offset 12: the clip range of ACTIVATION has the reserved value 1");
    EXPECT_EQ(with(Cmd0::OFM_PRECISION, 0xC000),
              "command stream offset 12: the rounding mode has the reserved value 3");
    EXPECT_EQ(with(Cmd0::OFM_PRECISION, 6),
              "command stream offset 12: the precision of a feature map has the reserved value 3");
    EXPECT_EQ(complaint(Op::POOL, 3), "command stream offset 12: the mode of POOL has the reserved value 3");
    EXPECT_EQ(complaint(Op::ELEMENTWISE, 10),
              "command stream offset 12: the mode of ELEMENTWISE has the reserved value 10");
}

TEST_F(Resolve, SizesThatCannotBeAreRefused) {
    set(Cmd0::KERNEL_STRIDE, 0x10);
    set(Cmd0::KERNEL_HEIGHT_M1, 3);
    EXPECT_EQ(complaint(Op::CONV), "command stream offset 12: kernel extent 4 x 3 does not fit its dilation 2 x 1");
    set(Cmd0::KERNEL_STRIDE, 0);
    set(Cmd0::IFM_PAD_BOTTOM, 7);
    EXPECT_EQ(complaint(Op::CONV),
              "command stream offset 12: CONV reads 0 rows and 7 columns: its padding covers the whole window");
    set(Cmd0::IFM_PAD_BOTTOM, 0);
    set(Cmd0::IFM_DEPTH_M1, 7);
    EXPECT_EQ(complaint(Op::DEPTHWISE), "command stream offset 12: DEPTHWISE has 8 input and 16 output channels");
    EXPECT_EQ(complaint(Op::POOL, 2), "command stream offset 12: REDUCE_SUM has 16 output channels, wanted 1");
    EXPECT_EQ(complaint(Op::CONV), "resolved");
}

}  // namespace
}  // namespace talpa::npu
