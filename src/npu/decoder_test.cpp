#include "npu/decoder.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace talpa::npu
