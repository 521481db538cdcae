// From an order of work to a plan: blocks, encoded weights, which copy by DMA when, and where every byte lies. One
// builder makes many plans of one network, for the search that chooses among them. (ethos-u65, sections 9.5 and 10.3)
#pragma once

#include <array>
#include <map>
#include <optional>

#include "compiler/schedule/allocate.h"
#include "compiler/schedule/filters.h"
#include "compiler/schedule/lut_slots.h"
#include "compiler/schedule/plan.h"
#include "compiler/schedule/planner.h"

namespace talpa::compiler {

/// Which weights are copied to SRAM ahead of their use: those of groups always.
enum class Buffering : std::uint8_t { Groups, Gainful, Large };

class PlanBuilder {
  public:
    /// Weights of a group, side by side in region 0 and in their buffer.
    struct WeightBuffer {
        std::uint64_t offset = 0, bytes = 0;
        std::vector<std::uint32_t> steps;
    };
    /// What was built, to be taken up again: the plan without its network, and what places are found for.
    struct Draft {
        Plan plan;
        std::map<std::uint32_t, WeightBuffer> buffers;  ///< by first step of the group
    };

    /// Builds into `plan`, whose network is given and stays.
    PlanBuilder(Plan& plan, const Target& target, OutputPlaces output_places, BlockChooser& chooser,
                FilterEncoder& encoder);

    /// Decides everything but places. `limit`: of SRAM, for tensors and copies. Errors: NotSupported, where no block
    /// fits.
    [[nodiscard]] host::Result<void> build(Order order, std::uint64_t limit, Buffering buffering);
    /// Finds the places. Returns the bytes of SRAM that are taken: `available` is enough, less is not looked for.
    std::uint64_t place(std::uint64_t available, Effort effort);

    [[nodiscard]] Draft draft() const;
    void take_up(Draft draft);

    /// Of the network, with the regions that the tensors of such plans have.
    [[nodiscard]] Planner& planner() { return planner_; }
    /// Bytes of SRAM that constants take, before anything is encoded.
    [[nodiscard]] std::uint64_t estimated_constants() const;

  private:
    // A copy by DMA that must be done before action `use`.
    struct Load {
        Action action;
        std::uint32_t use = 0, last = 0;  // actions that need it
        std::uint32_t barrier = 0;        // not before this one
        double cycles = 0;
    };

    // plan_builder.cpp: what is done
    [[nodiscard]] std::vector<Placement> regions() const;
    [[nodiscard]] npu::Operation stripe_operation(const Stripe& stripe, bool buffered) const;
    [[nodiscard]] host::Result<void> choose_blocks(const Order& order);
    void place_constants(const Order& order);
    void load_weights(const Group& g);
    void add_stripe(const Stripe& stripe, LutSlots& slots);

    // plan_loads.cpp: what is copied when
    [[nodiscard]] std::vector<std::uint64_t> sram_profile() const;
    [[nodiscard]] double copy_cycles(std::uint64_t bytes) const;
    [[nodiscard]] bool buffer_more(Order& order, std::uint64_t limit, Buffering buffering);
    void insert_loads(std::uint64_t limit);

    // plan_places.cpp: where it lies
    struct Lives {
        std::vector<std::optional<LiveRange>> tensors;  // nothing: no action touches it
        std::map<std::uint32_t, LiveRange> buffers;     // by first step of the group
    };
    [[nodiscard]] Lives lives() const;
    [[nodiscard]] std::uint64_t constants_in_sram() const;
    std::uint64_t allocate_tensors(std::uint64_t enough, Effort effort);
    void place_buffer(std::uint32_t group, std::uint64_t address);

    Plan& plan_;
    const Network& n_;
    const Target& target_;
    OutputPlaces output_places_;
    BlockChooser& chooser_;
    FilterEncoder& encoder_;
    Planner planner_;
    std::vector<bool> possible_input_;  // by tensor
    std::vector<Block> blocks_;
    std::map<std::uint32_t, WeightBuffer> buffers_;  // by first step of the group
    std::vector<Load> loads_;
    std::array<std::uint32_t, kLutSlots> slot_free_{};
};

}  // namespace talpa::compiler
