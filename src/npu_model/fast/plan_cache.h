// The plans of a model's streams, by the operation's place in its stream. A plan is used again only for exactly the
// same operation with exactly the same filter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "npu_model/fast/plan.h"

namespace talpa::npu_model::fast {

/// The plan of one operation that stays as it is, with a filter that does too: made when it is first needed.
struct PlanSlot {
    bool made = false;
    Isa isa = Isa::Generic;
    std::unique_ptr<Plan> plan;
};

class PlanCache {
  public:
    using Make = std::unique_ptr<Plan> (*)(const Context&, Isa);

    /// The plan for this operation, made now if it is not here; null where the planner declined (which is remembered
    /// too).
    [[nodiscard]] const Plan* get(const Context& context, Isa isa, Make make);

  private:
    struct Entry {
        npu::Operation op;
        Isa isa = Isa::Generic;
        std::shared_ptr<PackedWeights> packed;  // keeps what the plan points at; its address is the filter's identity
        std::unique_ptr<Plan> plan;
    };
    // Streams are a few thousand operations; whoever runs ever new ones should not fill the memory.
    static constexpr std::size_t kMaxEntries = 16384;
    std::unordered_map<std::uint32_t, Entry> entries_;  // by offset of the command
};

}  // namespace talpa::npu_model::fast
