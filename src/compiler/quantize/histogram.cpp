#include "compiler/quantize/histogram.h"

#include <algorithm>
#include <cmath>

#include "compiler/floats/hot_kernels.h"

namespace talpa::compiler {

namespace {
constexpr std::size_t kSampled = 1 << 15;  // numbers that one call adds to the bins at most
}

double Histogram::width() const {
    return std::ldexp(2.0 / kBins, exponent_);
}

void Histogram::widen(int exponent) {
    if (counts_.empty()) {
        counts_.assign(kBins, 0);
        exponent_ = exponent;
    }
    for (; exponent_ < exponent; ++exponent_) {
        std::vector<std::uint64_t> folded(kBins, 0);
        for (int i = 0; i < kBins; ++i)
            folded[static_cast<std::size_t>(kBins / 4 + i / 2)] += counts_[static_cast<std::size_t>(i)];
        counts_ = std::move(folded);
    }
}

void Histogram::add(std::span<const float> data) {
    if (data.empty()) return;
    float least = 0, greatest = 0;
    hot_kernels().range(data.data(), data.size(), least, greatest);
    // Twice the range is finite exactly if all numbers are; then none of them needs a look of its own.
    if (!std::isfinite(least) || !std::isfinite(greatest) || std::isnan(data[0])) {
        std::vector<float> finite;
        for (const float x : data)
            if (std::isfinite(x)) finite.push_back(x);
        not_finite_ += data.size() - finite.size();
        return add(finite);
    }
    least_ = std::min(least_, least);
    greatest_ = std::max(greatest_, greatest);
    // frexp: |x| = m * 2^e with m in [0.5, 1), hence |x| < 2^e. Zeros alone need some width, any.
    int exponent = -100;
    const float most = std::max(std::fabs(least), std::fabs(greatest));
    if (most > 0) std::frexp(most, &exponent);
    widen(std::max(exponent, -100));
    const std::size_t step = data.size() / kSampled + 1;
    const float inverse = static_cast<float>(1.0 / width());
    for (std::size_t i = 0; i < data.size(); i += step) {
        if (std::isnan(data[i])) {
            ++not_finite_;
            continue;
        }
        const int bin = static_cast<int>(std::floor(data[i] * inverse)) + kBins / 2;
        ++counts_[static_cast<std::size_t>(std::clamp(bin, 0, kBins - 1))];
        ++total_;
    }
}

void Histogram::add(const Histogram& other) {
    not_finite_ += other.not_finite_;
    if (other.empty()) return;
    least_ = std::min(least_, other.least_);
    greatest_ = std::max(greatest_, other.greatest_);
    widen(other.exponent_);
    Histogram folded = other;
    folded.widen(exponent_);
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += folded.counts_[i];
    total_ += other.total_;
}

}  // namespace talpa::compiler
