#include "compiler/schedule/merit.h"

#include <cmath>

namespace talpa::compiler {

bool better(const Merit& a, const Merit& b, const Target& target) {
    // What moves to DRAM is no saving: it counts more there.
    constexpr double kOfDram = 1.5;
    const auto bytes = [](const Merit& m) {
        return static_cast<double>(m.fast_bytes) + kOfDram * static_cast<double>(m.arena_bytes);
    };
    if (target.optimize == Optimize::Size) return bytes(a) < bytes(b) || (bytes(a) <= bytes(b) && a.cycles < b.cycles);
    constexpr std::uint64_t kNegligible = 300;  // one part in so many
    if (target.sram_bytes >= kUnlimited) {
        // A kilobyte is not worth an effort.
        constexpr double kPrice = 0.1, kLittle = 1024;
        const auto cost = [&](const Merit& m) {
            return static_cast<double>(m.cycles + kOfAJob) * std::pow(bytes(m) + kLittle, kPrice);
        };
        // Memory never costs more than half of the time, or of many more operations.
        constexpr std::uint64_t kNothing = 3000;  // cycles
        return cost(a) < cost(b) && a.cycles < 2 * b.cycles + kNothing &&
               (a.operations <= b.operations * 2 || a.cycles < b.cycles);
    }
    const bool more = a.arena_bytes > b.arena_bytes || a.operations > b.operations * 2;
    if (a.cycles + a.cycles / kNegligible < b.cycles) return true;
    return a.fast_bytes < b.fast_bytes && !more && a.cycles <= b.cycles + b.cycles / kNegligible;
}

bool too_slow(std::uint64_t cycles, std::uint64_t fastest) {
    return cycles / 2 > fastest || cycles > 2 * fastest;
}

}  // namespace talpa::compiler
