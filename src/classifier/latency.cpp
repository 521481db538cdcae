#include "classifier/latency.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace talpa::classifier {
namespace {

/// Of sorted values: the smallest that at least `share` of them do not exceed.
double quantile(const std::vector<double>& sorted, double share) {
    const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
    return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

constexpr unsigned kBarWidth = 40;

std::string bar(std::size_t count, std::size_t most) {
    return std::string(most == 0 ? 0 : (count * kBarWidth + most - 1) / most, '#');
}

}  // namespace

Latency latency_of(std::vector<double> runs_ms) {
    std::sort(runs_ms.begin(), runs_ms.end());
    const std::size_t n = runs_ms.size();
    const double median = n % 2 == 1 ? runs_ms[n / 2] : (runs_ms[n / 2 - 1] + runs_ms[n / 2]) / 2;
    return {.min = runs_ms.front(), .median = median, .p90 = quantile(runs_ms, 0.9), .max = runs_ms.back(), .runs = n};
}

std::string histogram(std::vector<double> runs_ms, unsigned bins) {
    if (runs_ms.size() < 10) return {};
    std::sort(runs_ms.begin(), runs_ms.end());
    const double low = runs_ms.front(), high = quantile(runs_ms, 0.99);
    if (!(high > low)) return {};
    const double width = (high - low) / bins;
    std::vector<std::size_t> counts(bins + 1);
    for (const double ms : runs_ms)
        ++counts[ms > high ? bins : std::min<std::size_t>(static_cast<std::size_t>((ms - low) / width), bins - 1)];
    const std::size_t most = *std::max_element(counts.begin(), counts.end());
    std::string text;
    for (unsigned i = 0; i < bins; ++i)
        text += fmt::format("  {:9.3f} .. {:9.3f} ms {:7} {}\n", low + i * width, low + (i + 1) * width, counts[i],
                            bar(counts[i], most));
    if (counts[bins] > 0)
        text += fmt::format("  {:9.3f} .. {:9.3f} ms {:7} {}\n", high, runs_ms.back(), counts[bins],
                            bar(counts[bins], most));
    return text;
}

}  // namespace talpa::classifier
