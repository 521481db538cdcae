#include "npu/extent.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace talpa::npu {
namespace {

std::set<std::int64_t> bytes_of(const FeatureMapBoxes& boxes, bool merged) {
    std::set<std::int64_t> bytes;
    for (unsigned i = 0; i < boxes.count; ++i) {
        const Box box = merged ? boxes.boxes[i].merged() : boxes.boxes[i];
        box.for_each_run([&](Extent run) {
            for (std::int64_t b = run.begin; b < run.end; ++b) bytes.insert(b);
        });
    }
    return bytes;
}

// Every byte of every element, by the addressing formula alone (ethos-u65, section 4.1).
std::set<std::int64_t> bytes_by_formula(const FeatureMap& fm, const Volume& v) {
    std::set<std::int64_t> bytes;
    for (auto y = v.y0; y < v.y1; ++y)
        for (auto x = v.x0; x < v.x1; ++x)
            for (auto c = v.c0; c < v.c1; ++c)
                for (int b = 0; b < fm.type.bytes; ++b) bytes.insert(fm.offset_of(y, x, c) + b);
    return bytes;
}

TEST(Extent, BoxesHoldExactlyTheBytesOfTheAddressFormula) {
    std::mt19937 random(1);
    const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
    for (int round = 0; round < 2000; ++round) {
        FeatureMap fm;
        fm.type = {static_cast<std::uint8_t>(1 << pick(0, 2)), true};
        fm.layout = pick(0, 1) != 0 ? Layout::Nhcwb16 : Layout::Nhwc;
        fm.height = static_cast<std::uint32_t>(pick(1, 6));
        fm.width = static_cast<std::uint32_t>(pick(1, 6));
        fm.depth = static_cast<std::uint32_t>(pick(1, 40));
        fm.width0 = static_cast<std::uint32_t>(pick(1, 7));
        fm.height0 = static_cast<std::uint32_t>(pick(1, 7));
        fm.height1 = static_cast<std::uint32_t>(pick(1, 7));
        for (auto& base : fm.base) base = static_cast<std::uint64_t>(pick(0, 10000));
        const std::int64_t es = fm.type.bytes;
        fm.stride_x = pick(0, 3) == 0 ? pick(-200, 200) : es * fm.depth;
        fm.stride_y = pick(0, 3) == 0 ? pick(-2000, 2000) : es * fm.depth * fm.width;
        fm.stride_c = pick(0, 3) == 0 ? pick(-2000, 2000) : 16 * es * fm.width;
        const auto part = [&](std::uint32_t limit) {
            const auto a = static_cast<std::uint32_t>(pick(0, static_cast<int>(limit) - 1));
            return std::pair(a, static_cast<std::uint32_t>(pick(static_cast<int>(a) + 1, static_cast<int>(limit))));
        };
        const auto [y0, y1] = part(fm.height);
        const auto [x0, x1] = part(fm.width);
        const auto [c0, c1] = part(fm.depth);
        for (const Volume& v : {Volume{0, fm.height, 0, fm.width, 0, fm.depth}, Volume{y0, y1, x0, x1, c0, c1}}) {
            const auto wanted = bytes_by_formula(fm, v);
            ASSERT_EQ(bytes_of(boxes_of(fm, v), false), wanted) << round;
            ASSERT_EQ(bytes_of(boxes_of(fm, v), true), wanted) << round;
        }
        const Extent all = hull(fm);
        const auto wanted = bytes_by_formula(fm, {0, fm.height, 0, fm.width, 0, fm.depth});
        ASSERT_LE(all.begin, *wanted.begin());
        ASSERT_GT(all.end, *wanted.rbegin());
        if (fm.layout == Layout::Nhwc) {
            ASSERT_EQ(all.begin, *wanted.begin());
            ASSERT_EQ(all.end, *wanted.rbegin() + 1);
        }
    }
}

TEST(Extent, BricksReachToTheEndOfTheirPaddingChannels) {
    FeatureMap fm;
    fm.layout = Layout::Nhcwb16;
    fm.height = fm.height0 = fm.height1 = 2;
    fm.width = fm.width0 = 3;
    fm.depth = 20;
    fm.stride_y = 96;
    fm.stride_c = 48;
    EXPECT_EQ(hull(fm).end, 192);
}

TEST(Extent, ADenseMapIsOneRun) {
    FeatureMap fm;
    fm.height = fm.height0 = fm.height1 = 5;
    fm.width = fm.width0 = 7;
    fm.depth = 3;
    fm.stride_x = 3;
    fm.stride_y = 21;
    const auto boxes = boxes_of(fm);
    ASSERT_EQ(boxes.count, 1u);
    EXPECT_EQ(boxes.boxes[0].merged().runs(), 1);
    EXPECT_EQ(boxes.boxes[0].merged().run, 105);
}

TEST(Extent, AStridedDmaReadsWhatItPacksAndTheOtherWayRound) {
    Dma dma;
    dma.src = 1000;
    dma.dst = 50;
    dma.length = 8;
    dma.size0 = 3;
    dma.size1 = 2;
    dma.skip0 = 4;
    dma.skip1 = 100;
    dma.dst_stride_mode = 2;
    EXPECT_EQ(source_box(dma).hull(), (Extent{1000, 1048}));
    // Rows 12 apart, planes 3 * 8 + 100 apart: the last run starts at 50 + 124 + 24.
    EXPECT_EQ(destination_box(dma).hull(), (Extent{50, 206}));
    EXPECT_EQ(destination_box(dma).runs(), 6);
    dma.dst_stride_mode = 0;
    EXPECT_EQ(source_box(dma).hull(), (Extent{1000, 1008}));
}

TEST(Extent, HugeStridesSaturateInsteadOfWrappingRound) {
    Dma dma;
    dma.length = (1ull << 40) - 1;
    dma.size0 = dma.size1 = 65535;
    dma.skip0 = dma.skip1 = (1ll << 39) - 1;
    dma.dst_stride_mode = 2;
    EXPECT_GT(destination_box(dma).hull().end, 1ll << 40);
    EXPECT_GT(source_box(dma).hull().end, 1ll << 40);
    dma.skip0 = dma.skip1 = -(1ll << 39);
    dma.length = 1;
    EXPECT_LT(destination_box(dma).hull().begin, 0);
}

TEST(Extent, TheLutOfAnInterpolatedTableFillsAllSlots) {
    Operation op;
    op.kind = OpKind::AvgPool;
    op.activation.function = Activation::Function::Lut;
    op.ifm.type = op.ofm.type = {2, true};
    Extent lut;
    for_each_access(op, [&](const Access& access, Extent e) {
        if (access.internal) lut = e;
    });
    EXPECT_EQ(lut, (Extent{0xB800, 0xC000}));
}

}  // namespace
}  // namespace talpa::npu
