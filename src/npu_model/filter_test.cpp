// Filters: records and banks of two cores, and the cache that finds them by content.
#include "npu_model/filter.h"

#include <gtest/gtest.h>

#include "npu_model/weight_encoder_for_test.h"

namespace talpa::npu_model {
namespace {

struct Stored {
    WeightOrder order;
    std::vector<std::vector<std::uint8_t>> weights, records;

    [[nodiscard]] FilterSource source() const {
        FilterSource s;
        s.order = order;
        for (std::size_t i = 0; i < weights.size(); ++i) {
            s.weights[i] = weights[i];
            s.records[i] = records[i];
        }
        return s;
    }
};

// A bank whose weight at o, i is 10 * o + i + seed.
Stored stored(std::uint8_t cores, int seed = 0) {
    Stored s{{.ofm_depth = 5, .ifm_depth = 3, .block_depth = 16, .cores = cores}, {}, {}};
    std::vector<std::int16_t> bank;
    for (int o = 0; o < 5; ++o)
        for (int i = 0; i < 3; ++i) bank.push_back(static_cast<std::int16_t>(10 * o + i + seed));
    for (unsigned core = 0; core < cores; ++core) {
        s.weights.push_back(testing::encode_bank(s.order, core, bank));
        s.records.emplace_back();
        for (unsigned o = core; o < 5; o += cores)
            for (unsigned byte : {o, 0xFFu, 0xFFu, 0xFFu, 0xFFu, 1u, 0u, 0u, 0x80u, 0xC0u | (30 + o)})
                s.records.back().push_back(static_cast<std::uint8_t>(byte));
    }
    return s;
}

TEST(Filter, reads_records_of_ten_bytes) {
    const Filter f = decode_filter(stored(1).source()).value();
    ASSERT_EQ(f.records.size(), 5u);
    EXPECT_EQ(f.records[3].bias, -(std::int64_t{1} << 8) + 3);  // signed 40 bits: 0xFFFFFFFF03
    EXPECT_EQ(f.records[3].multiplier, 0x80000001u);
    EXPECT_EQ(f.records[3].shift, 33);  // bits 7:6 are not the shift's
}

TEST(Filter, interleaves_the_channels_of_two_cores) {
    const Filter one = decode_filter(stored(1).source()).value(), two = decode_filter(stored(2).source()).value();
    EXPECT_EQ(one.weights, two.weights);
    for (std::size_t o = 0; o < 5; ++o) EXPECT_EQ(two.records[o].shift, 30 + o);
    EXPECT_EQ(two.weights[3 * 3 + 2], 32);
}

TEST(FilterCache, finds_equal_content_wherever_it_lies) {
    FilterCache cache(1 << 20);
    const Stored a = stored(1), copy = stored(1), other = stored(1, 1);
    const auto first = cache.get(a.source(), 0).value();
    EXPECT_EQ(cache.get(copy.source(), 0).value(), first);
    EXPECT_EQ(cache.get(copy.source(), 99).value(), first);
    EXPECT_NE(cache.get(other.source(), 0).value(), first);
    EXPECT_EQ(cache.get(a.source(), 0).value(), first);  // the hint now says `other`
    EXPECT_EQ(cache.decoded(), 2u);
}

TEST(FilterCache, tells_shapes_apart) {
    FilterCache cache(1 << 20);
    Stored a = stored(1);
    static_cast<void>(cache.get(a.source(), 0).value());
    a.order.block_depth = 32;  // the same count of symbols, and here the same order; another key all the same
    static_cast<void>(cache.get(a.source(), 0).value());
    FilterSource global = a.source();
    global.records = {};
    global.scales_globally = true;
    EXPECT_TRUE(cache.get(global, 0).value()->records.empty());
    EXPECT_EQ(cache.decoded(), 3u);
}

TEST(FilterCache, drops_what_was_used_longest_ago_to_stay_under_its_limit) {
    FilterCache probe(1 << 20);
    static_cast<void>(probe.get(stored(1, 0).source(), 0).value());
    const std::size_t one = probe.size_bytes();
    FilterCache cache(2 * one + one / 2);
    for (const int seed : {0, 1, 0, 2, 0, 1}) {
        const auto filter = cache.get(stored(1, seed).source(), 0).value();
        EXPECT_EQ(filter->weights[0], seed);
        EXPECT_LE(cache.size_bytes(), 2 * one + one / 2);
    }
    EXPECT_EQ(cache.decoded(), 4u);  // 0, 1, 2, and 1 again
}

TEST(FilterCache, an_entry_larger_than_the_cache_still_works) {
    FilterCache cache(10);
    EXPECT_EQ(cache.get(stored(1, 3).source(), 0).value()->weights[0], 3);
    EXPECT_EQ(cache.size_bytes(), 0u);
}

TEST(FilterCache, errors_are_not_kept) {
    FilterCache cache(1 << 20);
    Stored a = stored(1);
    const std::uint8_t good = a.weights[0][0];
    a.weights[0][0] = 4;
    EXPECT_FALSE(cache.get(a.source(), 0));
    a.weights[0][0] = good;
    EXPECT_TRUE(cache.get(a.source(), 0));
}

}  // namespace
}  // namespace talpa::npu_model
