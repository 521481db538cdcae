// Expected probabilities by NumPy: numpy.exp(x - x.max()) / numpy.exp(x - x.max()).sum()
#include "classifier/ranking.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace talpa::classifier {
namespace {

using runtime::ScalarType;
using ::testing::HasSubstr;

std::vector<std::uint8_t> floats(const std::vector<float>& values) {
    std::vector<std::uint8_t> bytes(values.size() * 4);
    for (std::size_t i = 0; i < values.size(); ++i) store_le(&bytes[4 * i], values[i]);
    return bytes;
}

std::vector<std::size_t> indices(const Classification& c) {
    std::vector<std::size_t> out;
    for (const auto& r : c.top) out.push_back(r.index);
    return out;
}

TEST(Classify, LogitsGetASoftmax) {
    const auto bytes = floats({1.0f, 3.0f, 2.0f, -1.0f});
    const auto c = classify({ScalarType::Float32, {1, 4}, bytes, {}}, 3).value();
    EXPECT_EQ(c.scores, Classification::Scores::Softmax);
    EXPECT_THAT(indices(c), ::testing::ElementsAre(1, 2, 0));
    EXPECT_NEAR(c.top[0].score, 0.65723, 1e-5);
    EXPECT_NEAR(c.top[1].score, 0.24178, 1e-5);
    EXPECT_EQ(c.classes, 4u);
}

TEST(Classify, ProbabilitiesAreLeftAlone) {
    const auto bytes = floats({0.1f, 0.7f, 0.2f});
    const auto c = classify({ScalarType::Float32, {3}, bytes, {}}, 5).value();
    EXPECT_EQ(c.scores, Classification::Scores::Probabilities);
    ASSERT_EQ(c.top.size(), 3u) << "no more than there are";
    EXPECT_NEAR(c.top[0].score, 0.7, 1e-6);
}

TEST(Classify, IntegersWithoutAScaleStayRaw) {
    const std::vector<std::uint8_t> bytes{std::uint8_t(-5), 100, 100, 7};
    const auto c = classify({ScalarType::Int8, {1, 4, 1, 1}, bytes, {}}, 2).value();
    EXPECT_EQ(c.scores, Classification::Scores::Raw);
    EXPECT_THAT(indices(c), ::testing::ElementsAre(1, 2)) << "equal scores by index";
    EXPECT_EQ(c.top[0].score, 100);
}

TEST(Classify, IntegersWithAScaleAreTakenAsNumbers) {
    const std::vector<std::uint8_t> logits{0, 10, 20};
    const auto c = classify({ScalarType::Int8, {1, 3}, logits, Quantization{0.1, 10}}, 1).value();
    EXPECT_EQ(c.scores, Classification::Scores::Softmax);
    EXPECT_NEAR(c.top[0].score, 0.66524, 1e-5);  // softmax of -1, 0, 1
    // A softmax that was quantized by 1/256, zero point -128: 0.25, 0.5, 0.25.
    const std::vector<std::uint8_t> probabilities{std::uint8_t(-64), 0, std::uint8_t(-64)};
    const auto p = classify({ScalarType::Int8, {1, 3}, probabilities, Quantization{1.0 / 256, -128}}, 1).value();
    EXPECT_EQ(p.scores, Classification::Scores::Probabilities);
    EXPECT_EQ(p.top[0].score, 0.5);
}

TEST(Classify, MapsAndSingleNumbersAreNoClasses) {
    const auto bytes = floats({1, 2, 3, 4});
    EXPECT_FALSE(is_classification({ScalarType::Float32, {1, 2, 2}, bytes, {}}));
    EXPECT_FALSE(is_classification({ScalarType::Float32, {1, 1}, Bytes(bytes).first(4), {}}));
    EXPECT_FALSE(is_classification({ScalarType::Int64, {1, 2}, bytes, {}})) << "an argmax";
    EXPECT_TRUE(is_classification({ScalarType::Float32, {1, 4, 1, 1}, bytes, {}}));
}

TEST(Classify, AScoreThatIsNoNumberIsAnError) {
    const auto bytes = floats({1, std::numeric_limits<float>::quiet_NaN()});
    EXPECT_THAT(classify({ScalarType::Float32, {2}, bytes, {}}, 1).error().describe(),
                HasSubstr("score of class 1 is nan"));
}

}  // namespace
}  // namespace talpa::classifier
