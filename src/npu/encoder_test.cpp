#include "npu/encoder.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "npu/decoder.h"
#include "npu/host/streams_for_test.h"
#include "npu/host/vector_sink.h"
#include "npu/registers_used.h"

namespace talpa::npu {
namespace {

std::vector<Operation> decoded(Words words) {
    std::vector<Operation> ops;
    Decoder decoder{words};
    while (true) {
        const auto op = decoder.next().value();
        if (!op) return ops;
        ops.push_back(*op);
    }
}

std::vector<std::uint32_t> encoded(const std::vector<Operation>& ops, Product product) {
    VectorSink sink;
    StreamWriter writer(sink, product);
    for (const Operation& op : ops) EXPECT_TRUE(writer.emit(op));
    EXPECT_EQ(writer.size_bytes(), sink.words.size() * 4);
    return sink.words;
}

void expect_round_trip(const std::string& name, Words words, Product product) {
    const auto before = decoded(words);
    const auto stream = encoded(before, product);
    auto after = decoded(stream);
    ASSERT_EQ(before.size(), after.size()) << name;
    for (std::size_t i = 0; i < before.size(); ++i) {
        after[i].offset_bytes = before[i].offset_bytes;
        ASSERT_TRUE(before[i] == after[i]) << name << " operation " << i << " " << op_kind_name(before[i].kind);
    }
    // Compilers leave out writes that change nothing; ours must not write more than they do (a few registers that no
    // operation of the stream needs, they write and we do not).
    EXPECT_LE(stream.size(), words.size() + 8) << name;
}

TEST(Encoder, EveryGoldenStreamSurvivesTheRoundTrip) {
    const auto streams = testing::golden_streams();
    EXPECT_GT(streams.size(), 60u);
    for (const auto& s : streams) {
        const auto payload = s.parsed();
        expect_round_trip(s.name, payload.stream, static_cast<Product>(ConfigWord{payload.config}.product()));
    }
}

TEST(Encoder, WholeNetworksSurviveTheRoundTrip) {
    TALPA_NEEDS_REFERENCE();
    for (const auto& s : testing::streams_under(reference / "models"))
        expect_round_trip(s.name, s.parsed().stream, Product::EthosU65);
}

// Operations as no compiler makes them: random register contents, of which those that decode must come back.
TEST(Encoder, RandomOperationsSurviveTheRoundTrip) {
    std::mt19937_64 random(7);
    const auto pick = [&](std::uint64_t limit) { return random() % limit; };
    std::set<OpKind> seen;
    unsigned survived = 0;
    for (int round = 0; round < 20000; ++round) {
        RegisterState state;
        const auto set0 = [&](Cmd0 code, std::uint64_t v) {
            state.apply({0, static_cast<std::uint16_t>(code), false, static_cast<std::uint16_t>(v), 0});
        };
        for (const auto& r : used_cmd0()) set0(r.code, pick(2) != 0 ? pick(4) : random());
        for (const auto& r : used_cmd1())
            state.apply({0, static_cast<std::uint16_t>(r.code), true, static_cast<std::uint16_t>(random()),
                         static_cast<std::uint32_t>(random())});
        // Fields with few legal values would let hardly anything through.
        for (const Cmd0 region :
             {Cmd0::IFM_REGION, Cmd0::OFM_REGION, Cmd0::IFM2_REGION, Cmd0::WEIGHT_REGION, Cmd0::SCALE_REGION})
            set0(region, pick(8));
        for (const Cmd0 region : {Cmd0::DMA0_SRC_REGION, Cmd0::DMA0_DST_REGION})
            set0(region, pick(8) | pick(2) << 8 | pick(3) << 9);
        set0(Cmd0::PARALLEL_MODE, pick(2));
        set0(Cmd0::ACC_FORMAT, pick(3));
        set0(Cmd0::IFM_UPSCALE, pick(3));
        set0(Cmd0::BLOCKDEP, pick(4));
        constexpr std::array<unsigned, 4> kRanges{0, 2, 3, 5};
        constexpr std::array<unsigned, 5> kFunctions{0, 3, 4, 16, 21};
        set0(Cmd0::ACTIVATION, kFunctions[pick(5)] | kRanges[pick(4)] << 12);
        set0(Cmd0::IFM_PRECISION, pick(2) | pick(3) << 2 | pick(2) << 6 | pick(3) << 8 | pick(3) << 14);
        set0(Cmd0::IFM2_PRECISION, pick(2) | pick(3) << 2 | pick(2) << 6);
        set0(Cmd0::OFM_PRECISION, pick(2) | pick(3) << 1 | pick(2) << 6 | pick(2) << 8 | pick(3) << 14);
        if (pick(2) != 0) set0(Cmd0::OFM_DEPTH_M1, state.get(Cmd0::IFM_DEPTH_M1));
        constexpr std::array<std::pair<Op, unsigned>, 6> kOps{{{Op::CONV, 1},
                                                               {Op::DEPTHWISE, 1},
                                                               {Op::POOL, 3},
                                                               {Op::ELEMENTWISE, 10},
                                                               {Op::DMA_START, 1},
                                                               {Op::KERNEL_WAIT, 4}}};
        const auto [code, parameters] = kOps[pick(kOps.size())];
        const auto op = state.resolve(
            {0, static_cast<std::uint16_t>(code), false, static_cast<std::uint16_t>(pick(parameters)), 0});
        if (!op) continue;
        Operation stop;
        auto after = decoded(encoded({*op, stop}, Product::EthosU65));
        after[0].offset_bytes = 0;
        ASSERT_TRUE(after[0] == *op) << round << " " << op_kind_name(op->kind);
        seen.insert(op->kind);
        ++survived;
    }
    EXPECT_GT(survived, 5000u);
    EXPECT_EQ(seen.size(), 17u) << "every kernel, DMA and a wait";
}

TEST(Encoder, EveryRegisterHasOneRow) {
    std::set<Cmd0> cmd0;
    for (const auto& r : used_cmd0()) EXPECT_TRUE(cmd0.insert(r.code).second);
    std::set<Cmd1> cmd1;
    for (const auto& r : used_cmd1()) EXPECT_TRUE(cmd1.insert(r.code).second);
#define X(name, code) EXPECT_TRUE(cmd0.contains(Cmd0::name)) << #name;
    TALPA_NPU_CMD0(X)
#undef X
#define X(name, code) EXPECT_TRUE(cmd1.contains(Cmd1::name)) << #name;
    TALPA_NPU_CMD1(X)
#undef X
    EXPECT_EQ(cmd0.size() + cmd1.size(), 87u) << "the published register list";
}

TEST(Encoder, AFullBufferIsAnError) {
    std::array<std::uint32_t, 3> memory{};
    WordBuffer buffer(memory);
    StreamWriter writer(buffer);
    EXPECT_TRUE(writer.set(Cmd0::IFM_REGION, 1));
    EXPECT_TRUE(writer.set(Cmd0::IFM_REGION, 1));
    EXPECT_TRUE(writer.set(Cmd1::IFM_STRIDE_Y, 0xFF'FFFF'FFF0));
    EXPECT_EQ(writer.set(Cmd0::OFM_REGION, 1).error().code, ErrorCode::OutOfResources);
    EXPECT_EQ(buffer.words().size(), 3u);
    EXPECT_EQ(memory[1], 0x00FF4005u);
    EXPECT_EQ(memory[2], 0xFFFFFFF0u);
}

TEST(Encoder, AU55StreamHasNoParallelMode) {
    Operation op;
    op.kind = OpKind::MaxPool;
    op.ifm.height0 = op.ifm.height1 = op.ifm.width0 = op.ifm.depth = 1;
    op.ofm = op.ifm;
    op.ofm.height = op.ofm.width = 1;
    const auto has = [&](Product product) {
        const auto words = encoded({op, Operation{}}, product);
        return std::find(words.begin(), words.end(), 0x123u) != words.end();
    };
    EXPECT_TRUE(has(Product::EthosU65));
    EXPECT_FALSE(has(Product::EthosU55));
}

}  // namespace
}  // namespace talpa::npu
