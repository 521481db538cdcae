#include "npu/validate.h"

#include <gtest/gtest.h>

#include <functional>

#include "npu/block.h"
#include "npu/decoder.h"
#include "npu/host/streams_for_test.h"

namespace talpa::npu {
namespace {

void for_each_operation(const testing::FoundStream& stream,
                        const std::function<void(const Operation&, const Hardware&)>& fn) {
    const auto payload = stream.parsed();
    Decoder decoder{payload.stream};
    while (true) {
        const auto op = decoder.next();
        ASSERT_TRUE(op) << stream.name;
        if (!*op) return;
        fn(**op, *find_hardware(payload.config));
    }
}

void expect_legal(const std::vector<testing::FoundStream>& streams) {
    for (const auto& stream : streams)
        for_each_operation(stream, [&](const Operation& op, const Hardware& hardware) {
            const auto legal = check(op, hardware);
            EXPECT_TRUE(legal) << stream.name << ": " << host::Error(legal.error()).message;
        });
}

TEST(Validate, EveryGoldenOperationIsLegal) {
    expect_legal(testing::golden_streams());
}

TEST(Validate, EveryOperationOfWholeNetworksIsLegal) {
    TALPA_NEEDS_REFERENCE();
    expect_legal(testing::streams_under(reference / "models"));
}

TEST(Block, TheLayoutIsTheOneThatTheCompilerProgrammed) {
    unsigned equal = 0, larger = 0;
    for (const auto& stream : testing::golden_streams())
        for_each_operation(stream, [&](const Operation& op, const Hardware& hardware) {
            if (!is_kernel(op.kind)) return;
            const ShramLayout layout = shram_layout(op, hardware);
            EXPECT_TRUE(layout.fits());
            const bool two_maps = has_ifm2(op.kind) && !op.ifm2_is_scalar;
            const bool same = layout.ib_end == op.ib_end && layout.ab_start == op.ab_start &&
                              (!two_maps || layout.ifm2_ib_start == op.ifm2_ib_start);
            ++(same ? equal : larger);
        });
    // A copy whose block is as deep as a cut channel count is given more than it needs (ethos-u65, section 9.4).
    EXPECT_GT(equal, 1000u);
    EXPECT_LE(larger, 4u);
}

// The first convolution of a golden stream, spoiled in one way at a time.
class Spoiled : public ::testing::Test {
  protected:
    Operation conv, add, dma;

    void SetUp() override {
        for (const auto& stream : testing::streams_under(talpa::testing::golden_folder() / "models"))
            for_each_operation(stream, [&](const Operation& op, const Hardware&) {
                if (op.kind == OpKind::Conv && op.ifm.layout == Layout::Nhcwb16) conv = op;
                if (op.kind == OpKind::Add && !op.ifm2_is_scalar) add = op;
                if (op.kind == OpKind::Dma) dma = op;
            });
        ASSERT_EQ(conv.kind, OpKind::Conv);
        ASSERT_EQ(add.kind, OpKind::Add);
        ASSERT_EQ(dma.kind, OpKind::Dma);
    }

    static std::string complaint(Operation op, const std::function<void(Operation&)>& spoil) {
        EXPECT_TRUE(check(op));
        spoil(op);
        op.offset_bytes = 8;
        const auto result = check(op);
        return result ? "legal" : host::Error(result.error()).message;
    }
};

TEST_F(Spoiled, AlignmentIsChecked) {
    EXPECT_EQ(complaint(conv, [](Operation& o) { o.ifm.base[0] = 8; }),
              "command stream offset 8: CONV: IFM base 0x8 is no multiple of 16");
    EXPECT_EQ(complaint(conv, [](Operation& o) { o.ifm.base[1] = 8; }), "legal") << "the tile is not in use";
    EXPECT_EQ(complaint(conv, [](Operation& o) { o.ifm.stride_y = -8; }),
              "command stream offset 8: CONV: IFM row stride -8 is no multiple of 16");
    EXPECT_EQ(complaint(conv, [](Operation& o) { o.ifm.stride_c = 24; }),
              "command stream offset 8: CONV: IFM brick stride 24 is no multiple of 16");
    EXPECT_EQ(complaint(conv,
                        [](Operation& o) {
                            o.weights[0].offset = 0x18;
                            o.weights[0].size = 32;
                        }),
              "command stream offset 8: CONV: weights at 0x18, 32 bytes: both must be multiples of 16");
    EXPECT_EQ(complaint(conv,
                        [](Operation& o) {
                            o.ifm.layout = Layout::Nhwc;
                            o.ifm.type.bytes = 2;
                            o.ifm.base[0] = 3;
                        }),
              "command stream offset 8: CONV: IFM base 0x3 is no multiple of 2");
}

TEST_F(Spoiled, LimitsAreChecked) {
    EXPECT_EQ(complaint(conv, [](Operation& o) { o.kernel.height = 65; }),
              "command stream offset 8: CONV has a kernel of 65 x 1, at most height 64 is possible");
    EXPECT_EQ(complaint(conv, [](Operation& o) { o.kernel.stride_x = 5; }),
              "command stream offset 8: CONV has strides 1 x 5, at most 4 is possible");
    EXPECT_EQ(complaint(conv, [](Operation& o) { o.padding.top = 7; }),
              "command stream offset 8: CONV is padded by 7 x 0, more than its kernel");
    EXPECT_EQ(complaint(conv, [](Operation& o) { o.block_depth = 136; }),
              "command stream offset 8: CONV has a block of " + std::to_string(conv.block_height) + " x " +
                  std::to_string(conv.block_width) + " x 136, at most 32 x 64 x 128 is possible");
    EXPECT_EQ(complaint(conv,
                        [](Operation& o) {
                            o.cores = 2;
                            o.weights[1] = {};
                        }),
              "command stream offset 8: CONV asks for 2 cores, ethos-u65-256 has 1");
    EXPECT_EQ(complaint(conv, [](Operation& o) { o.weights[0].size = 0; }),
              "command stream offset 8: CONV has no weights");
    EXPECT_EQ(complaint(conv,
                        [](Operation& o) {
                            o.scales[0].size = 9;
                            o.ofm.depth = 1;
                        }),
              "command stream offset 8: CONV: 9 bytes of scale records for 1 channels, wanted 10");
}

TEST_F(Spoiled, PrecisionsAreChecked) {
    EXPECT_EQ(complaint(conv, [](Operation& o) { o.ifm.type.bytes = 4; }),
              "command stream offset 8: CONV does not read 32-bit elements");
    EXPECT_EQ(complaint(conv, [](Operation& o) { o.acc_format = AccFormat::Int40; }),
              "command stream offset 8: CONV asks for 40-bit accumulators with 8-bit input, they are for 16-bit");
    EXPECT_EQ(complaint(add, [](Operation& o) { o.ifm2.type.bytes = 2; }),
              "command stream offset 8: ADD has operands of 8 and 16 bits");
    EXPECT_EQ(complaint(add, [](Operation& o) { o.kind = OpKind::Clz; }),
              "command stream offset 8: CLZ does not read 8-bit elements");
    EXPECT_EQ(complaint(add,
                        [](Operation& o) {
                            o.activation.raw_min = 5;
                            o.activation.raw_max = 4;
                        }),
              "command stream offset 8: ADD clamps from 5 to 4");
    EXPECT_EQ(complaint(add,
                        [](Operation& o) {
                            o.activation.function = Activation::Function::Lut;
                            o.activation.lut_slot = 2;
                            o.ofm.type.bytes = 4;
                        }),
              "command stream offset 8: ADD reads a table of 4 slots at slot 2");
    EXPECT_EQ(
        complaint(add,
                  [](Operation& o) {
                      o.activation.function = Activation::Function::Lut;
                      o.activation.lut_slot = 5;
                      o.ofm.type.bytes = 4;
                  }),
        "command stream offset 8: ADD with a table of 1024 bytes at LUT slot 5, beyond the end of the 2048 bytes");
}

TEST_F(Spoiled, TheDivisionOfTheSharedRamIsChecked) {
    EXPECT_NE(complaint(conv, [](Operation& o) { --o.ib_end; }), "legal");
    EXPECT_NE(complaint(conv, [](Operation& o) { ++o.ab_start; }), "legal");
    EXPECT_NE(complaint(conv,
                        [](Operation& o) {
                            o.block_width = 64;
                            o.block_height = 32;
                        }),
              "legal");
    EXPECT_NE(complaint(add, [](Operation& o) { --o.ifm2_ib_start; }), "legal");
    EXPECT_NE(complaint(add, [](Operation& o) { o.ib_end = 47; }), "legal");
}

TEST_F(Spoiled, DmasStayInTheTables) {
    EXPECT_EQ(complaint(dma,
                        [](Operation& o) {
                            o.dma.dst_internal = true;
                            o.dma.dst = 0xB000;
                            o.dma.length = 256;
                        }),
              "command stream offset 8: DMA writes shared RAM from 0xb000, the LUT begins at 0xb800");
    EXPECT_EQ(complaint(dma,
                        [](Operation& o) {
                            o.dma.dst_internal = true;
                            o.dma.dst = 0xBF80;
                            o.dma.length = 256;
                        }),
              "command stream offset 8: DMA uses shared RAM from 49024 to 49280, it has 49152");
    EXPECT_EQ(complaint(dma, [](Operation& o) { o.parameter = 16; }),
              "command stream offset 8: DMA has parameter 16, there is only channel 0 and mode 0");
    EXPECT_EQ(complaint(dma, [](Operation& o) { o.dma.length = 0; }), "command stream offset 8: DMA copies nothing");
    EXPECT_EQ(complaint(dma,
                        [](Operation& o) {
                            o.kind = OpKind::DmaWait;
                            o.parameter = 16;
                        }),
              "command stream offset 8: DMA_WAIT has parameter 16, there is only channel 0");
}

}  // namespace
}  // namespace talpa::npu
