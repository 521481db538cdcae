// What plans are compared by: time first, a little of it for memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compiler/schedule/target.h"

namespace talpa::compiler {

struct Merit {
    std::uint64_t cycles = 0, fast_bytes = 0, arena_bytes = 0;
    std::size_t operations = 0;
};

/// What it takes to begin and end a job, whatever it is: of a network of microseconds, time is worth less.
constexpr std::uint64_t kOfAJob = 400'000;

/// Time first. A little of it may go for less memory: next to nothing where the limit was given, for that much may be
/// used; where there is none, 7 % for half of it. Optimized for size: memory first.
[[nodiscard]] bool better(const Merit& a, const Merit& b, const Target& target);

/// Optimized for size: memory is never worth more than twice the time of the fastest plan.
[[nodiscard]] bool too_slow(std::uint64_t cycles, std::uint64_t fastest);

}  // namespace talpa::compiler
