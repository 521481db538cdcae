// A planned operation: everything that follows from the operation, its filter and the instruction set alone, so that a
// run only touches data. Planners answer null for what they leave to the reference kernels.
#pragma once

#include <cstdint>
#include <memory>

#include "npu_model/fast/isa.h"
#include "npu_model/fast/microkernels.h"
#include "npu_model/kernels.h"

namespace talpa::npu_model::fast {

class Plan {
  public:
    virtual ~Plan() = default;
    /// Runs the operation that was planned on this context's memory. False, having touched nothing, where the memory at
    /// hand (overlaps, room behind a feature map) does not allow it.
    [[nodiscard]] virtual bool run(const Context& context) const = 0;
};

[[nodiscard]] const Microkernels& microkernels(Isa isa);

[[nodiscard]] std::unique_ptr<Plan> plan_conv(const Context& context, Isa isa);
[[nodiscard]] std::unique_ptr<Plan> plan_depthwise(const Context& context, Isa isa);
[[nodiscard]] std::unique_ptr<Plan> plan_byte_map(const Context& context, Isa isa);
[[nodiscard]] std::unique_ptr<Plan> plan_pool(const Context& context, Isa isa);
[[nodiscard]] std::unique_ptr<Plan> plan_elementwise(const Context& context, Isa isa);

}  // namespace talpa::npu_model::fast
