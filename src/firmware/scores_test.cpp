#include "firmware/scores.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace talpa::firmware {
namespace {

using runtime::ScalarType;
using runtime::Tensor;

template <typename T>
Tensor tensor_of(ScalarType type, std::vector<T>& values) {
    Tensor t;
    t.type = type;
    t.rank = 2;
    t.sizes = {1, static_cast<std::int32_t>(values.size())};
    t.dim_order = {0, 1};
    t.data = reinterpret_cast<std::uint8_t*>(values.data());
    t.capacity_bytes = values.size() * sizeof(T);
    return t;
}

TEST(Exponential, IsTheOneOfTheCLibraryToTwoUlp) {
    for (float x = -87; x < 88.7f; x += 0.0137f) {
        const double expected = std::exp(static_cast<double>(x));
        EXPECT_NEAR(exponential(x) / expected, 1.0, 2.5e-7) << x;
    }
    EXPECT_EQ(exponential(0), 1);
    EXPECT_EQ(exponential(-100), 0);
    EXPECT_TRUE(std::isinf(exponential(89)));
}

TEST(BestScores, AreASoftmaxInOrder) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal(0, 4);
    std::vector<float> logits(1000);
    for (float& v : logits) v = normal(random);
    double total = 0;
    for (const float v : logits) total += std::exp(static_cast<double>(v));
    Score top[5];
    ASSERT_EQ(best_scores(tensor_of(ScalarType::Float32, logits), {}, top), 5u);
    std::vector<std::size_t> order(1000);
    for (std::size_t i = 0; i < 1000; ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return logits[a] > logits[b]; });
    for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(top[i].index, order[static_cast<std::size_t>(i)]);
        EXPECT_NEAR(top[i].probability, std::exp(static_cast<double>(top[i].logit)) / total, 1e-6);
    }
}

TEST(BestScores, EqualOnesAreInOrderOfTheirIndex) {
    std::vector<std::int8_t> q{5, 7, 7, 5, 7};
    Score top[4];
    ASSERT_EQ(best_scores(tensor_of(ScalarType::Int8, q), {0.5f, 1}, top), 4u);
    EXPECT_EQ(top[0].index, 1u);
    EXPECT_EQ(top[1].index, 2u);
    EXPECT_EQ(top[2].index, 4u);
    EXPECT_EQ(top[3].index, 0u);
    EXPECT_EQ(top[0].logit, 3.0f);
}

TEST(BestScores, DistributionIsLeftAsItIs) {
    std::vector<float> p{0.1f, 0.7f, 0.2f};
    Score top[5];
    ASSERT_EQ(best_scores(tensor_of(ScalarType::Float32, p), {}, top), 3u);
    EXPECT_EQ(top[0].probability, 0.7f);
}

}  // namespace
}  // namespace talpa::firmware
