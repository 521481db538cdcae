// The cost of a whole command stream: each operation's estimate placed on a timeline on which DMA runs beside the
// kernels and only the stream's own waits hold either back (ethos-u65, sections 3.3 and 8.4).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/host/error.h"
#include "npu/decoder.h"
#include "npu_model/cycles/operation_cost.h"

namespace talpa::npu_model {

/// One operation on the timeline.
struct ScheduledCost {
    OperationCost cost;
    std::uint64_t start = 0, end = 0;  ///< cycles since the first operation
    std::uint64_t stall = 0;  ///< cycles that the operation's unit stood idle before it, waiting for the other unit
};

struct NetworkCost {
    std::vector<ScheduledCost> operations;  ///< one per operation of the stream, waits and STOP included
    std::uint64_t cycles_total = 0;         ///< from the first start to the last end
    std::uint64_t kernel_cycles = 0;        ///< sum over kernels of `cost.cycles`
    std::uint64_t npu_cycles = 0;           ///< sum over kernels of `cost.npu_cycles`
    std::uint64_t stall_cycles = 0;         ///< kernels waiting for DMA
    std::uint64_t contention_cycles = 0;    ///< kernels slowed by DMA on the same memory
    std::uint64_t dma_cycles = 0;           ///< sum over DMAs
    std::uint64_t macs = 0;
    std::array<std::uint64_t, kMemoryAreas> memory_cycles{};
    std::array<Traffic, kMemoryAreas> traffic{};
    std::array<std::uint64_t, kBounds> cycles_by_bound{};

    [[nodiscard]] double utilisation(const SystemConfig& config) const {
        return cycles_total == 0
                   ? 0.0
                   : static_cast<double>(macs) / (static_cast<double>(cycles_total) * config.npu.hardware->macs);
    }
};

[[nodiscard]] NetworkCost network_cost(std::span<const npu::Operation> operations,
                                       const SystemConfig& config = default_system_config());

/// All operations of a stream, decoded.
[[nodiscard]] host::Result<std::vector<npu::Operation>> decode_all(npu::Words stream);

}  // namespace talpa::npu_model
