// Rounded scaling (ethos-u65, section 5.1): values from the section, and the frameworks' own integer routines as the
// outside authority (the doubling high multiply with its rounding shift, as the reference kernels define them).
#include "npu_model/rounding.h"

#include <gtest/gtest.h>

#include "npu_model/random_operation.h"

namespace talpa::npu_model {
namespace {

using npu::Rounding;

// The reference kernels' two steps on 32-bit numbers.
std::int32_t doubling_high_multiply(std::int32_t a, std::int32_t b) {
    const std::int64_t product = std::int64_t{a} * b;
    const std::int64_t nudge = product >= 0 ? (1 << 30) : 1 - (1 << 30);
    return static_cast<std::int32_t>((product + nudge) / (std::int64_t{1} << 31));  // toward zero
}
std::int32_t rounding_shift(std::int32_t x, int exponent) {
    const std::int32_t mask = static_cast<std::int32_t>((std::int64_t{1} << exponent) - 1);
    const std::int32_t threshold = (mask >> 1) + (x < 0 ? 1 : 0);
    return (x >> exponent) + ((x & mask) > threshold ? 1 : 0);
}

TEST(Rounding, tfl_is_the_reference_kernels_two_steps) {
    testing::Random random(5);
    for (int i = 0; i < 200'000; ++i) {
        const auto v =
            static_cast<std::int32_t>(random.once_in(2) ? random.in(-3000, 3000) : random.in(INT32_MIN + 1, INT32_MAX));
        const auto m = static_cast<std::int32_t>(random.once_in(4) ? 1 << 30 : random.in(1 << 30, INT32_MAX));
        const int right = static_cast<int>(random.in(0, 30));
        ASSERT_EQ(scale(v, static_cast<std::uint32_t>(m), static_cast<unsigned>(31 + right), Rounding::Tfl),
                  rounding_shift(doubling_high_multiply(v, m), right))
            << v << " * " << m << " >> " << 31 + right;
    }
}

TEST(Rounding, tfl_and_natural_are_the_same_up_to_shift_31) {
    testing::Random random(6);
    for (int i = 0; i < 20'000; ++i) {
        const auto v = random.in(-(std::int64_t{1} << 40), std::int64_t{1} << 40);
        const auto m = static_cast<std::uint32_t>(random.bits());
        const auto s = static_cast<unsigned>(random.in(0, 31));
        ASSERT_EQ(scale(v, m, s, Rounding::Tfl), scale(v, m, s, Rounding::Natural));
    }
}

TEST(Rounding, ties) {
    struct Case {
        std::int64_t v;
        unsigned shift;
        std::int64_t natural, tfl, truncate;
    };
    // v * 2^30 >> shift: shift 31 halves, shift 32 quarters.
    for (const Case& c : {Case{1, 31, 1, 1, 0}, Case{-1, 31, 0, 0, 0}, Case{3, 31, 2, 2, 1}, Case{-3, 31, -1, -1, -1},
                          Case{2, 32, 1, 1, 0}, Case{-2, 32, 0, -1, 0}, Case{6, 32, 2, 2, 1}, Case{-6, 32, -1, -2, -1},
                          Case{1, 32, 0, 1, 0},  // 0.25: the first step makes 0.5 of it, the second 1
                          Case{-1, 32, 0, 0, 0}, Case{5, 32, 1, 2, 1}, Case{-5, 32, -1, -1, -1}}) {
        EXPECT_EQ(scale(c.v, 1u << 30, c.shift, Rounding::Natural), c.natural) << c.v << " >> " << c.shift;
        EXPECT_EQ(scale(c.v, 1u << 30, c.shift, Rounding::Tfl), c.tfl) << c.v << " >> " << c.shift;
        EXPECT_EQ(scale(c.v, 1u << 30, c.shift, Rounding::Truncate), c.truncate) << c.v << " >> " << c.shift;
    }
}

// 2^31 + 1 is how pools say "times one" (section 5.5): bit 31 is no sign.
TEST(Rounding, the_multiplier_is_unsigned) {
    for (std::int64_t v : {std::int64_t{0}, std::int64_t{1}, std::int64_t{-1}, std::int64_t{255}, std::int64_t{-32768},
                           std::int64_t{1 << 29}, -std::int64_t{1 << 29}})
        EXPECT_EQ(scale(v, 0x80000001u, 31, Rounding::Natural), v);
    EXPECT_EQ(scale(1, 0xFFFFFFFFu, 0, Rounding::Natural), 0xFFFFFFFFll);
}

// 40-bit sums times 32-bit multipliers need 72 bits: (2^40 - 1) * (2^32 - 1) = 2^72 - 2^40 - 2^32 + 1.
TEST(Rounding, products_beyond_64_bits_are_exact) {
    constexpr std::int64_t kBig = (std::int64_t{1} << 40) - 1;
    EXPECT_EQ(scale(kBig, 0xFFFFFFFFu, 32, Rounding::Natural), (std::int64_t{1} << 40) - 256 - 1);
    EXPECT_EQ(scale(-kBig, 0xFFFFFFFFu, 32, Rounding::Natural), -(std::int64_t{1} << 40) + 256 + 1);
    EXPECT_EQ(scale(kBig, 0xFFFFFFFFu, 63, Rounding::Natural), 512);
}

TEST(Rounding, once_and_half_away_from_zero) {
    EXPECT_EQ(scale_half_away(1, {1, 1}), 1);
    EXPECT_EQ(scale_half_away(-1, {1, 1}), -1);
    EXPECT_EQ(scale_half_away(-3, {1, 2}), -1);
    EXPECT_EQ(scale_half_away(1, {1u << 30, 32}), 0);  // 0.25, where TFL's two steps say 1
    EXPECT_EQ(scale_half_away(7, {5, 0}), 35);
}

TEST(Rounding, wraps_to_a_register) {
    EXPECT_EQ(wrap_to(0x80000000, 32), INT32_MIN);
    EXPECT_EQ(wrap_to(-0x80000001ll, 32), INT32_MAX);
    EXPECT_EQ(wrap_to((std::int64_t{1} << 39), 40), -(std::int64_t{1} << 39));
    EXPECT_EQ(wrap_to(-5, 40), -5);
}

}  // namespace
}  // namespace talpa::npu_model
