// What calibration remembers of a value: its range exactly, and how its numbers are spread. The bins are aligned to
// powers of two, and widening folds pairs of bins, so that the result does not depend on the order in which numbers
// (or threads) come.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace talpa::compiler {

class Histogram {
  public:
    static constexpr int kBins = 4096;  ///< half of them below zero

    /// Counts `data`, every number or evenly spread ones if there are many. Infinite and NaN numbers are counted apart.
    void add(std::span<const float> data);
    void add(const Histogram& other);

    [[nodiscard]] bool empty() const { return total_ == 0; }
    [[nodiscard]] float least() const { return least_; }
    [[nodiscard]] float greatest() const { return greatest_; }
    [[nodiscard]] std::uint64_t not_finite() const { return not_finite_; }
    [[nodiscard]] std::uint64_t total() const { return total_; }
    /// Bin i holds [low(i), low(i) + width()).
    [[nodiscard]] const std::vector<std::uint64_t>& counts() const { return counts_; }
    [[nodiscard]] double width() const;
    [[nodiscard]] double low(int bin) const { return (bin - kBins / 2) * width(); }

  private:
    void widen(int exponent);

    float least_ = std::numeric_limits<float>::max();
    float greatest_ = std::numeric_limits<float>::lowest();
    std::uint64_t total_ = 0, not_finite_ = 0;
    int exponent_ = kNone;  ///< all numbers are within -2^exponent .. 2^exponent
    std::vector<std::uint64_t> counts_;
    static constexpr int kNone = -200;
};

}  // namespace talpa::compiler
