// The best plan of a network as it is arranged, within the target's SRAM: less and less of it, several ways to buffer
// weights, the cycle model as the judge.
#pragma once

#include <optional>

#include "compiler/schedule/merit.h"
#include "compiler/schedule/plan_builder.h"

namespace talpa::compiler {

class PlanSearch {
  public:
    /// Leaves the best in `plan`, whose network is given.
    PlanSearch(Plan& plan, const Target& target, OutputPlaces output_places, BlockChooser& chooser,
               FilterEncoder& encoder, const Judge& judge);

    /// `fastest`: cycles of the fastest plan seen, here or of another arrangement of the same network. Errors:
    /// OutOfResources where none fits.
    [[nodiscard]] host::Result<Merit> run(std::uint64_t& fastest);

    /// After a run that ended for want of SRAM: how much there must be.
    [[nodiscard]] SramNeed sram_need();

  private:
    struct Solution {
        PlanBuilder::Draft draft;
        Merit merit{.cycles = UINT64_MAX};  // its fast_bytes: all of SRAM
    };
    [[nodiscard]] host::Result<Solution> solve(std::uint64_t available, unsigned attempts);

    Plan& plan_;
    const Target& target_;
    const Judge& judge_;
    PlanBuilder builder_;
    SramNeed lacking_;  // by what a search said that found nothing
};

}  // namespace talpa::compiler
