// How long repeated runs took.
#pragma once

#include <string>
#include <vector>

namespace talpa::classifier {

struct Latency {
    double min = 0, median = 0, p90 = 0, max = 0;  ///< milliseconds
    std::size_t runs = 0;
};

/// `runs_ms` is not empty. The median of an even count is the mean of the middle two; p90 is the smallest run that at
/// least nine tenths of the runs do not exceed.
[[nodiscard]] Latency latency_of(std::vector<double> runs_ms);

/// The distribution as lines of bars, each ending in a newline: at most `bins` of equal width from the fastest run to
/// the 99th percentile, what is slower in a last line of its own. Empty for fewer than 10 runs.
[[nodiscard]] std::string histogram(std::vector<double> runs_ms, unsigned bins);

}  // namespace talpa::classifier
