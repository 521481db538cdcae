// The encoder against the NPU model's decoder, which shares no line with it, and its sizes against what a Gaussian
// source needs at least.
#include "compiler/weights/encoder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "compiler/weights/order.h"
#include "npu_model/weights.h"

namespace talpa::compiler {
namespace {

std::vector<std::int16_t> gaussian(std::size_t count, double sigma, double zeros, unsigned seed, int limit = 127) {
    std::mt19937 random(seed);
    std::normal_distribution<double> value(0, sigma);
    std::uniform_real_distribution<double> unit(0, 1);
    std::vector<std::int16_t> out(count);
    for (auto& v : out)
        v = unit(random) < zeros
                ? std::int16_t{0}
                : static_cast<std::int16_t>(std::clamp<double>(std::round(value(random)), -limit, limit));
    return out;
}

void round_trip(const std::vector<std::int16_t>& symbols) {
    const std::vector<std::uint8_t> stream = encode_weights(symbols);
    EXPECT_EQ(stream.size() % 16, 0u);
    const auto decoded = npu_model::decode_symbols(stream, symbols.size());
    ASSERT_TRUE(decoded.has_value());
    EXPECT_EQ(*decoded, symbols);
}

TEST(WeightEncoder, EveryDistributionDecodesToItself) {
    unsigned seed = 1;
    for (const std::size_t count : {1u, 2u, 40u, 511u, 4096u, 70000u})
        for (const double sigma : {0.3, 1.0, 4.0, 12.0, 30.0, 90.0})
            for (const double zeros : {0.0, 0.3, 0.9, 1.0}) round_trip(gaussian(count, sigma, zeros, seed++));
}

TEST(WeightEncoder, NineBitWeightsAndExtremesDecodeToThemselves) {
    round_trip(gaussian(5000, 120, 0, 3, 255));
    round_trip(std::vector<std::int16_t>(1000, 255));
    round_trip(std::vector<std::int16_t>(1000, -255));
    round_trip({-255, 255, 0});
    std::vector<std::int16_t> all;
    for (int v = -255; v <= 255; ++v) all.push_back(static_cast<std::int16_t>(v));
    round_trip(all);
}

TEST(WeightEncoder, ARegionOfOtherWeightsGetsACodeOfItsOwn) {
    std::vector<std::int16_t> mixed = gaussian(20000, 2, 0, 5);
    const std::vector<std::int16_t> wide = gaussian(20000, 40, 0, 6);
    const std::size_t apart = encode_weights(mixed).size() + encode_weights(wide).size();
    mixed.insert(mixed.end(), wide.begin(), wide.end());
    round_trip(mixed);
    EXPECT_LT(encode_weights(mixed).size(), apart * 115 / 100);
}

// Few values, then many, then few others: a palette each, in next to no more bits than streams of their own.
TEST(WeightEncoder, SectionsHavePalettesOfTheirOwn) {
    for (const double zeros : {0.0, 0.6}) {
        std::vector<std::int16_t> joined;
        std::size_t apart = 0;
        for (const double sigma : {1.0, 30.0, 2.0, 60.0}) {
            std::vector<std::int16_t> part = gaussian(16384, sigma, zeros, static_cast<unsigned>(sigma));
            // Weights of few levels, as pruned or 4-bit ones are.
            for (auto& v : part) v = static_cast<std::int16_t>(std::clamp(v * (sigma < 10 ? 17 : 1), -255, 255));
            apart += encode_weights(part).size();
            joined.insert(joined.end(), part.begin(), part.end());
        }
        round_trip(joined);
        EXPECT_LE(encode_weights(joined).size(), apart + apart / 200);
    }
}

TEST(WeightEncoder, StaysCloseToTheEntropyOfGaussianWeights) {
    for (const double sigma : {3.0, 10.0, 30.0}) {
        const std::vector<std::int16_t> symbols = gaussian(100000, sigma, 0, 7);
        std::vector<double> counts(256);
        for (const auto v : symbols) counts[static_cast<std::size_t>(v + 128)] += 1;
        double entropy = 0;
        for (const double c : counts)
            if (c > 0) entropy -= c * std::log2(c / 100000);
        EXPECT_LT(8.0 * static_cast<double>(encode_weights(symbols).size()), entropy * 1.06) << sigma;
    }
}

TEST(WeightOrder, AgreesWithTheModelsWayBack) {
    std::mt19937 random(11);
    const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    for (int round = 0; round < 300; ++round) {
        FilterShape shape{1 + below(70), 1 + below(10), 1 + below(10), 1 + below(70)};
        StreamOrder order;
        order.block_depth = 8 * (1 + below(6));
        order.depthwise = below(3) == 0;
        if (order.depthwise) shape.ifm_depth = 1;
        order.part_kernel_first = below(2) == 0;
        order.ifm_16bit = below(3) == 0;
        order.dilation_y = 1 + below(2);
        order.dilation_x = 1 + below(2);
        order.cores = 1 + below(2);
        std::vector<std::int16_t> dense(shape.size());
        for (auto& v : dense) v = static_cast<std::int16_t>(1 + below(250));
        npu_model::WeightOrder back;
        back.ofm_depth = shape.ofm_depth;
        back.kernel_height = shape.height;
        back.kernel_width = shape.width;
        back.ifm_depth = shape.ifm_depth;
        back.block_depth = order.block_depth;
        back.dilation_y = static_cast<std::uint8_t>(order.dilation_y);
        back.dilation_x = static_cast<std::uint8_t>(order.dilation_x);
        back.depthwise = order.depthwise;
        back.part_kernel_first = order.part_kernel_first;
        back.ifm_16bit = order.ifm_16bit;
        back.cores = static_cast<std::uint8_t>(order.cores);
        std::vector<std::int16_t> bank(back.bank_size());
        for (unsigned core = 0; core < order.cores; ++core) {
            const auto symbols = stream_symbols(dense, shape, order, 0, shape.ofm_depth, core);
            ASSERT_EQ(symbols.size(), npu_model::symbol_count(back, core));
            EXPECT_TRUE(npu_model::place_weights(back, core, symbols, bank));
        }
        EXPECT_EQ(bank, dense);
    }
}

TEST(ScaleRecords, TenBytesEachPaddedToSixteen) {
    const std::vector<ScaleRecord> records{{-2, 0x80000001, 31}, {0x7FFFFFFFFF, 5, 62}};
    const std::vector<std::uint8_t> bytes = encode_records(records);
    const std::vector<std::uint8_t> wanted{0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0x01, 0, 0, 0x80, 31, 0xFF,
                                           0xFF, 0xFF, 0xFF, 0x7F, 5,    0,    0, 0, 62,   0,  0,
                                           0,    0,    0,    0,    0,    0,    0, 0, 0,    0};
    EXPECT_EQ(bytes, wanted);
    EXPECT_EQ(encode_records(records, 1, 2)[9], 62);
}

}  // namespace
}  // namespace talpa::compiler
