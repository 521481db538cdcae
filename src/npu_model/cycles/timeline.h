// When things happen: kernels and DMA as two units that work off a stream side by side, held back by its waits, by the
// depth of their queues and by each other's use of the memories (ethos-u65, section 3.3).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "npu/operation.h"
#include "npu_model/cycles/system_config.h"

namespace talpa::npu_model {

/// One job of either unit, or a wait.
struct Job {
    npu::OpKind kind = npu::OpKind::Stop;
    std::uint32_t wait_for = 0;                               ///< DMA_WAIT, KERNEL_WAIT: how many may be outstanding
    std::uint64_t cycles = 0;                                 ///< alone
    std::array<std::uint64_t, kMemoryAreas> memory_cycles{};  ///< of which each memory is busy
};

struct JobTime {
    double start = 0, end = 0;
    double stall = 0;  ///< a kernel: how long its unit stood idle before it
};

/// Times of every job, in stream order. A kernel and a DMA that together ask more of a memory than it has share it
/// evenly.
[[nodiscard]] std::vector<JobTime> simulate(std::span<const Job> jobs, const npu::Hardware& hardware);

}  // namespace talpa::npu_model
