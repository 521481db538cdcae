// Addresses for things that live for a while: as close to the lower bound, the largest sum of sizes at one time, as a
// search finds. Deterministic. (ethos-u65, section 10.3)
#pragma once

#include <cstdint>
#include <vector>

namespace talpa::compiler {

struct LiveRange {
    std::uint64_t size = 0;
    std::uint32_t first = 0, last = 0;  ///< times at which it must exist, both included
    std::uint64_t address = 0;          ///< result; a multiple of 16
};

/// The largest sum of sizes (rounded up to 16) at any time, and when.
struct Peak {
    std::uint64_t bytes = 0;
    std::uint32_t time = 0;
};
[[nodiscard]] Peak peak_of(const std::vector<LiveRange>& ranges);

/// How long to look for a better arrangement: quickly while plans are tried, thoroughly for the one that is kept.
enum class Effort : std::uint8_t { Quick, Thorough };

/// Fills in the addresses; returns the end of the highest range. Stops early when `enough` is reached.
[[nodiscard]] std::uint64_t allocate(std::vector<LiveRange>& ranges, std::uint64_t enough, Effort effort);

}  // namespace talpa::compiler
