// The performance monitor of the simulated device: a 48-bit cycle counter and four event counters, fed from the cycle
// model's estimates. (ethos-u65, section 2.2)
#pragma once

#include <array>
#include <cstdint>

#include "npu/operation.h"
#include "npu/registers.h"
#include "npu_model/cycles/operation_cost.h"

namespace talpa::npu_model {

class Pmu {
  public:
    /// Registers 0x180..0x1AC and 0x300..0x38C; `covers` says which those are. Unknown ones read 0.
    [[nodiscard]] static bool covers(std::uint32_t offset);
    [[nodiscard]] std::uint32_t read(std::uint32_t offset) const;
    void write(std::uint32_t offset, std::uint32_t value);
    void reset() { *this = Pmu{}; }

    /// PMU_MASK, obeyed where PMCR says so.
    void set_mask(bool masked) { masked_ = masked; }
    /// Time passes: `cycles` in which the NPU was active.
    void advance(std::uint64_t cycles);
    /// One operation is done: what it cost besides time.
    void count(const npu::Operation& op, const OperationCost& cost);
    /// An overflow whose interrupt is enabled has not been cleared.
    [[nodiscard]] bool interrupt() const { return (overflow_ & interrupt_enable_) != 0; }

  private:
    static constexpr std::uint32_t kSets = npu::pmu::kCycleCounter | 0xF;

    [[nodiscard]] bool counting() const;
    void add(std::size_t counter, std::uint64_t amount);

    std::uint32_t control_ = 0;  // PMCR bits 0 and 3
    bool masked_ = false;
    std::uint32_t enable_ = 0, overflow_ = 0, interrupt_enable_ = 0;
    std::uint64_t cycles_ = 0;
    std::uint32_t cycle_config_ = 0, axi_channel_ = 0;
    std::array<std::uint32_t, npu::reg::kEventCounters> counters_{}, events_{};
};

}  // namespace talpa::npu_model
