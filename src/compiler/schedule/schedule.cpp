// Puts the stages of scheduling together: the network is arranged in a few ways, the best plan of each searched for,
// and the better one kept.
#include "compiler/schedule/long_rows.h"
#include "compiler/schedule/maps.h"
#include "compiler/schedule/merit.h"
#include "compiler/schedule/plan_search.h"
#include "compiler/schedule/prepare.h"
#include "compiler/schedule/staging.h"

namespace talpa::compiler {
namespace {

// Where the limit is what may be used, slices have to be worth their operations.
bool clearly_faster(const Merit& a, const Merit& b, const Target&) {
    constexpr std::uint64_t kWorth = 200;  // one part in so many
    return a.cycles + b.cycles / kWorth < b.cycles;
}

}  // namespace

host::Result<Plan> schedule(Network network, const Target& target, const Judge& judge, OutputPlaces output_places,
                            SramNeed* need) {
    BlockChooser chooser(target);
    FilterEncoder encoder(*target.hardware);
    const bool unlimited = target.sram_bytes >= kUnlimited, smallest = target.optimize == Optimize::Size;
    fuse_tables(network);
    lengthen_rows(network, target, chooser);
    std::optional<Network> plain;
    if (unlimited || smallest) plain = network;
    stage_io(network, target, chooser);
    if (plain && plain->steps.size() == network.steps.size()) plain.reset();
    choose_layouts(network);
    Plan best;
    best.network = std::move(network);
    std::uint64_t fastest = UINT64_MAX;
    PlanSearch first(best, target, output_places, chooser, encoder, judge);
    auto found = first.run(fastest);
    if (!found) {
        if (need != nullptr && found.error().code == ErrorCode::OutOfResources) *need = first.sram_need();
        return std::unexpected(std::move(found.error()));
    }
    Merit merit = *found;
    const auto plan_for = [&](Plan& plan, Network of) {
        plan = {};
        plan.network = std::move(of);
        // For size, all arrangements share one limit of time.
        if (!smallest) fastest = UINT64_MAX;
        return PlanSearch(plan, target, output_places, chooser, encoder, judge).run(fastest);
    };
    const auto slow = [&](const Merit& m) { return smallest && too_slow(m.cycles, fastest); };
    // Another arrangement of the network is taken if its plan is the better one.
    const auto consider = [&](Network other, bool (*is_better)(const Merit&, const Merit&, const Target&)) {
        Plan plan;
        const auto its = plan_for(plan, std::move(other));
        if (!its) return;
        if (slow(merit)) {  // as is known now
            Plan anew;
            if (const auto again = plan_for(anew, best.network)) {
                best = std::move(anew);
                merit = *again;
            }
        }
        if (slow(*its) || !(slow(merit) || is_better(*its, merit, target))) return;
        best = std::move(plan);
        merit = *its;
    };
    // Large filters in slices, so that a part of them can be fetched while other work runs.
    const auto consider_slices = [&] {
        Network sliced = best.network;
        if (!target.constants_in_dram() || !slice_filters(sliced)) return;
        consider(std::move(sliced), unlimited || smallest ? better : clearly_faster);
    };
    if (smallest) consider_slices();
    // Copies of inputs and outputs take SRAM. Where that has a price, the network without them may be the better one.
    if (plain) {
        choose_layouts(*plain);
        consider(std::move(*plain), better);
    }
    if (!smallest) consider_slices();
    return best;
}

}  // namespace talpa::compiler
