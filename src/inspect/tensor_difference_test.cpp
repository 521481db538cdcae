#include "inspect/tensor_difference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace talpa::inspect {
namespace {

using runtime::ScalarType;

std::vector<std::uint8_t> floats(const std::vector<float>& values) {
    std::vector<std::uint8_t> bytes(values.size() * 4);
    for (std::size_t i = 0; i < values.size(); ++i) store_le(&bytes[4 * i], values[i]);
    return bytes;
}

TEST(TensorDifference, EqualBytesAreNoDifference) {
    const auto a = floats({1, std::numeric_limits<float>::quiet_NaN()});
    EXPECT_FALSE(difference(ScalarType::Float32, a, a));
}

TEST(TensorDifference, CountsDistanceAndFirstPlaceAreTold) {
    const auto a = floats({1, 2, 3, 4}), b = floats({1, 2.5f, 3, 1});
    const auto d = difference(ScalarType::Float32, a, b).value();
    EXPECT_EQ(d.elements, 4u);
    EXPECT_EQ(d.differing, 2u);
    EXPECT_EQ(d.max_abs, 3.0);
    EXPECT_EQ(d.first, 1u);
    EXPECT_EQ(d.first_a, 2.0);
    EXPECT_EQ(d.first_b, 2.5);
}

TEST(TensorDifference, SignsAndNumbersThatAreNone) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const auto zeros = difference(ScalarType::Float32, floats({0.0f}), floats({-0.0f})).value();
    EXPECT_EQ(zeros.differing, 1u) << "other bytes";
    EXPECT_EQ(zeros.max_abs, 0.0);
    EXPECT_TRUE(std::isinf(difference(ScalarType::Float32, floats({1}), floats({nan}))->max_abs));
}

TEST(TensorDifference, ElementsAreReadByTheirType) {
    const std::uint8_t bytes[] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};
    EXPECT_EQ(element_as_number(ScalarType::Int8, bytes), -1);
    EXPECT_EQ(element_as_number(ScalarType::UInt8, bytes), 255);
    EXPECT_EQ(element_as_number(ScalarType::Int16, bytes), -1);
    EXPECT_EQ(element_as_number(ScalarType::UInt16, bytes), 65535);
    EXPECT_EQ(element_as_number(ScalarType::Int32, bytes), -1);
    EXPECT_EQ(element_as_number(ScalarType::Int64, bytes), -1);
    // IEEE 754-2019: binary16 0x3555 is 0.333251953125, 0x0001 the smallest subnormal, 0xFC00 minus infinity.
    const auto half = [](std::uint16_t bits) {
        std::uint8_t p[2];
        store_le(p, bits);
        return element_as_number(ScalarType::Float16, p);
    };
    EXPECT_EQ(half(0x3555), 0.333251953125);
    EXPECT_EQ(half(0x0001), std::ldexp(1.0, -24));
    EXPECT_EQ(half(0xFC00), -std::numeric_limits<double>::infinity());
    const std::uint8_t bfloat[] = {0x80, 0xBF};
    EXPECT_EQ(element_as_number(ScalarType::BFloat16, bfloat), -1.0);
}

}  // namespace
}  // namespace talpa::inspect
