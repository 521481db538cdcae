#include "compiler/schedule/plan_search.h"

#include <algorithm>

namespace talpa::compiler {
namespace {

constexpr unsigned kAttempts = 10, kLoadAttempts = 4;

}  // namespace

PlanSearch::PlanSearch(Plan& plan, const Target& target, OutputPlaces output_places, BlockChooser& chooser,
                       FilterEncoder& encoder, const Judge& judge)
    : plan_(plan), target_(target), judge_(judge), builder_(plan, target, output_places, chooser, encoder) {}

host::Result<Merit> PlanSearch::run(std::uint64_t& fastest) {
    // A tighter limit sometimes gives the better order, for the search reckons and the judge knows; and memory that
    // hardly saves time is not worth having. So: less and less, until it costs.
    std::optional<Solution> best;
    const bool unlimited = target_.sram_bytes >= kUnlimited, smallest = target_.optimize == Optimize::Size;
    const std::uint64_t costly = unlimited ? 12 : 30;  // one part in so many
    // Each limit is a search of its own; a network of thousands of steps has one.
    const std::size_t most_limits = std::clamp<std::size_t>(4000 / (plan_.network.steps.size() + 1), 1, 8);
    std::uint64_t limit = target_.sram_bytes;
    // What is little need not become less, unless it has a price.
    const std::uint64_t least_limit = unlimited || smallest ? 0 : 4096;
    for (unsigned i = 0; i < most_limits; ++i) {
        auto found = solve(limit, i == 0 ? kAttempts : 2);
        if (!found) {
            if (i == 0) return std::unexpected(std::move(found.error()));
            break;
        }
        const std::uint64_t used = found->merit.fast_bytes, cycles = found->merit.cycles;
        fastest = std::min(fastest, cycles);
        const bool slow = smallest ? too_slow(cycles, fastest)
                                   : cycles > fastest + (unlimited ? std::min((fastest + kOfAJob) / costly, fastest)
                                                                   : fastest / costly);
        // What a tighter limit drives to DRAM is no saving either.
        const bool drives_out =
            !smallest && best && found->merit.arena_bytes > best->merit.arena_bytes && cycles >= best->merit.cycles;
        if (!best || (smallest && too_slow(best->merit.cycles, fastest)) ||
            (!slow && !drives_out && better(found->merit, best->merit, target_)))
            best = std::move(*found);
        if (slow || used <= least_limit) break;
        limit = used * 3 / 4;
    }
    builder_.take_up(std::move(best->draft));
    // Once more for as little as can be: what fitted was enough for the search.
    best->merit.fast_bytes = builder_.place(0, Effort::Thorough);
    return best->merit;
}

// What a search lacks first is seldom all that it needs: more and more, until one finds a plan; then down again to
// the least that does.
SramNeed PlanSearch::sram_need() {
    constexpr std::size_t kManySteps = 600;  // of which a search takes seconds
    SramNeed need = lacking_;
    if (need.bytes == 0 || plan_.network.steps.size() > kManySteps) return need;
    const auto suffices = [&](std::uint64_t bytes) {
        auto found = solve(bytes, kAttempts);
        if (found) need.peak_step = std::move(found->draft.plan.peak_step);
        return found.has_value();
    };
    std::uint64_t too_little = target_.sram_bytes, enough = need.bytes;
    constexpr unsigned kMostTries = 40;
    for (unsigned i = 0; !suffices(enough); ++i) {
        if (i == kMostTries) return need;
        too_little = enough;
        enough = std::max(lacking_.bytes, enough + enough / 32 + 16);
    }
    constexpr std::uint64_t kNear = 64;  // one part in so many
    while (enough - too_little > std::max<std::uint64_t>(16, enough / kNear)) {
        const std::uint64_t middle = (too_little + enough) / 2 / 16 * 16;
        if (middle <= too_little) break;
        (suffices(middle) ? enough : too_little) = middle;
    }
    need.bytes = enough;
    need.found = true;
    return need;
}

// The best plan within `available` bytes of SRAM.
host::Result<PlanSearch::Solution> PlanSearch::solve(std::uint64_t available, unsigned attempts) {
    std::uint64_t limit = available;
    std::uint64_t least = UINT64_MAX;  // that an arrangement took
    std::string peak;
    const Network& n = plan_.network;
    for (unsigned attempt = 0; attempt < attempts; ++attempt) {
        Shortage shortage;
        const std::optional<Order> order = builder_.planner().search(limit, shortage);
        if (!order) {
            if (least == UINT64_MAX) {
                least = shortage.required + builder_.estimated_constants();
                peak = describe(n, n.steps[std::min<std::size_t>(shortage.step, n.steps.size() - 1)]);
            }
            break;
        }
        Solution best;
        std::uint64_t over = UINT64_MAX;
        for (const Buffering buffering : {Buffering::Groups, Buffering::Gainful, Buffering::Large}) {
            // Buffers that fit by their sum may not fit by their places: then fewer, later ones.
            std::uint64_t loads_limit = limit;
            std::uint64_t top = 0;
            for (unsigned i = 0; i < kLoadAttempts; ++i) {
                TRY(builder_.build(*order, loads_limit, buffering));
                top = builder_.place(available, Effort::Quick);
                if (top <= available || buffering == Buffering::Groups) break;
                loads_limit -= std::min(loads_limit, std::max(top - available, limit / 50));
            }
            if (top > available) {
                over = std::min(over, top - available);
                if (top < least) {
                    least = top;
                    peak = plan_.peak_step;
                }
                continue;
            }
            const std::uint64_t cycles = judge_(plan_);
            if (cycles >= best.merit.cycles) continue;
            best = {builder_.draft(), {cycles, top, plan_.arena_bytes, plan_.actions.size()}};
        }
        if (best.merit.cycles != UINT64_MAX) return best;
        // The sum fits, the pieces do not: a little less, until they do.
        limit -= std::min(limit, std::max<std::uint64_t>(over, limit / 50));
    }
    lacking_ = {least, false, peak};
    return host::failure(ErrorCode::OutOfResources, "at least {} bytes of SRAM are required, {} are available", least,
                         available);
}

}  // namespace talpa::compiler
