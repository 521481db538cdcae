#include "compiler/quantize/range.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace talpa::compiler {

namespace {

constexpr std::array<std::string_view, 4> kNames{"minmax", "percentile", "mse", "entropy"};

RealRange whole(const Histogram& h) {
    return {std::min(0.0, static_cast<double>(h.least())), std::max(0.0, static_cast<double>(h.greatest()))};
}

/// The outermost 1 in 20,000 on each side left out: of 1e-6 to 3e-4 what served the reference classifiers best.
RealRange percentile(const Histogram& h) {
    const auto cut = static_cast<std::uint64_t>(static_cast<double>(h.total()) * 5e-5);
    RealRange range = whole(h);
    std::uint64_t seen = 0;
    for (int i = 0; i < Histogram::kBins; ++i) {
        seen += h.counts()[static_cast<std::size_t>(i)];
        if (seen > cut) {
            range.low = std::clamp(h.low(i), range.low, 0.0);
            break;
        }
    }
    seen = 0;
    for (int i = Histogram::kBins; i-- > 0;) {
        seen += h.counts()[static_cast<std::size_t>(i)];
        if (seen > cut) {
            range.high = std::clamp(h.low(i + 1), 0.0, range.high);
            break;
        }
    }
    return range;
}

/// Expected squared error with `steps` steps over `range`: within it the rounding's step^2 / 12, outside the distance.
double squared_error(const Histogram& h, RealRange range, double steps) {
    const double step = (range.high - range.low) / steps, width = h.width();
    double error = 0;
    for (int i = 0; i < Histogram::kBins; ++i) {
        const auto count = static_cast<double>(h.counts()[static_cast<std::size_t>(i)]);
        if (count == 0) continue;
        const double centre = h.low(i) + width / 2;
        // Zero is exact in any quantization; after a ReLU it is half of all numbers.
        if (i == Histogram::kBins / 2 && width < step) continue;
        const double outside = std::max({0.0, centre - range.high, range.low - centre});
        error += count * (outside > 0 ? outside * outside + step * step / 12 : step * step / 12);
    }
    return error;
}

/// Kullback-Leibler divergence between the numbers with those outside moved to the ends, and what is left of them after
/// `steps` steps have each been spread evenly over the bins that they merge.
double divergence(const Histogram& h, RealRange range, double steps) {
    const double step = (range.high - range.low) / steps, width = h.width();
    // Steps finer than the bins say nothing about the spread within a bin.
    if (step < width) return std::numeric_limits<double>::infinity();
    const auto count = static_cast<std::size_t>(steps);
    std::vector<double> merged(count, 0), used(count, 0), kept(Histogram::kBins, 0);
    const auto bin_of = [&](double x) {
        return std::clamp(static_cast<int>(std::floor(x / width)) + Histogram::kBins / 2, 0, Histogram::kBins - 1);
    };
    const auto step_of = [&](int bin) {
        return static_cast<std::size_t>(std::clamp((h.low(bin) + width / 2 - range.low) / step, 0.0, steps - 1));
    };
    const int first = bin_of(range.low), last = bin_of(range.high - width / 2);
    double inside = 0, total = 0;
    for (int i = 0; i < Histogram::kBins; ++i) {
        const auto n = static_cast<double>(h.counts()[static_cast<std::size_t>(i)]);
        // Zero is exact in any quantization, and after a ReLU it is half of all numbers.
        if (n == 0 || i == Histogram::kBins / 2) continue;
        kept[static_cast<std::size_t>(std::clamp(i, first, last))] += n;
        total += n;
        if (i < first || i > last) continue;
        merged[step_of(i)] += n;
        used[step_of(i)] += 1;
        inside += n;
    }
    if (inside <= 0) return std::numeric_limits<double>::infinity();
    double sum = 0;
    for (int i = first; i <= last; ++i) {
        const double p = kept[static_cast<std::size_t>(i)] / total;
        if (p <= 0) continue;
        const auto at = step_of(i);
        const double q = used[at] > 0 ? merged[at] / used[at] / inside : 0;
        sum += p * std::log(p / std::max(q, 1e-12));
    }
    return sum;
}

template <typename Cost>
RealRange search(const Histogram& h, Cost cost) {
    const RealRange all = whole(h);
    RealRange best = all;
    double least = cost(all);
    constexpr int kSteps = 48;
    // One end, then the other, twice: each changes the step that the other is judged with.
    for (int round = 0; round < 2; ++round)
        for (double RealRange::* end : {&RealRange::high, &RealRange::low})
            for (int i = 4; i <= kSteps; ++i) {
                RealRange range = best;
                range.*end = all.*end * i / kSteps;
                if (range.high - range.low <= 0) continue;
                if (const double c = cost(range); c < least) {
                    least = c;
                    best = range;
                }
            }
    return best;
}

}  // namespace

std::string_view observer_name(Observer observer) {
    return kNames[static_cast<std::size_t>(observer)];
}

std::optional<Observer> find_observer(std::string_view name) {
    const auto* at = std::ranges::find(kNames, name);
    if (at == kNames.end()) return std::nullopt;
    return static_cast<Observer>(at - kNames.begin());
}

RealRange choose_range(const Histogram& h, Observer observer, int bits) {
    if (h.empty()) return {};
    // With 16 bits a finer step is worth nothing beside a number that is cut off.
    if (bits > 8) return whole(h);
    const double steps = std::ldexp(1.0, bits) - 1;
    switch (observer) {
        case Observer::MinMax:
            return whole(h);
        case Observer::Percentile:
            return percentile(h);
        case Observer::Mse:
            return search(h, [&](RealRange r) { return squared_error(h, r, steps); });
        case Observer::Entropy:
            return search(h, [&](RealRange r) { return divergence(h, r, steps); });
    }
    return whole(h);
}

Quantization quantization_for(RealRange range, DType type) {
    const bool wide = type == DType::Int16;
    Quantization q{.type = type,
                   .scales = {},
                   .zero_points = {},
                   .axis = -1,
                   .min = wide ? -32768 : -128,
                   .max = wide ? 32767 : 127};
    if (wide) {
        const double most = std::max(-range.low, range.high);
        // A power of two: of 16 bits at most one is lost, and adding two such tensors is one operation of the NPU.
        q.scales = {most > 0 ? std::exp2(std::ceil(std::log2(most / 32767))) : 1.0 / 65536};
        q.zero_points = {0};
        return q;
    }
    const double width = range.high - range.low;
    // Scales are float32 in every format that this can be written to.
    const double scale = width > 0 ? static_cast<double>(static_cast<float>(width / 255)) : 1.0 / 256;
    q.scales = {scale};
    q.zero_points = {static_cast<std::int32_t>(std::clamp(-128.0 - std::nearbyint(range.low / scale), -128.0, 127.0))};
    return q;
}

}  // namespace talpa::compiler
