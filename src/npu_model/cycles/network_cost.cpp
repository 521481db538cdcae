#include "npu_model/cycles/network_cost.h"

#include <algorithm>

#include "npu_model/cycles/timeline.h"

namespace talpa::npu_model {
namespace {

// With a BLOCKDEP above 0 a kernel fetches its first block while the one before it still works on its last
// (section 3.5), so neither the fill of the one nor the drain of the other takes time of its own.
void overlap_neighbours(std::span<const npu::Operation> operations, std::vector<ScheduledCost>& costs) {
    const std::size_t none = operations.size();
    std::size_t previous = none;
    for (std::size_t i = 0; i < operations.size(); ++i) {
        if (!npu::is_kernel(operations[i].kind)) continue;
        if (previous != none && operations[i].blockdep > 0) {
            OperationCost& before = costs[previous].cost;
            OperationCost& after = costs[i].cost;
            before.npu_cycles -= before.drain_cycles;
            before.drain_cycles = 0;
            after.npu_cycles -= after.fill_cycles;
            after.fill_cycles = 0;
            settle(before);
            settle(after);
        }
        previous = i;
    }
}

void place(std::span<const npu::Operation> operations, const SystemConfig& config, std::vector<ScheduledCost>& costs) {
    std::vector<Job> jobs;
    jobs.reserve(operations.size());
    for (std::size_t i = 0; i < operations.size(); ++i)
        jobs.push_back(
            {operations[i].kind, operations[i].parameter & 0xFu, costs[i].cost.cycles, costs[i].cost.memory_cycles});
    const std::vector<JobTime> times = simulate(jobs, *config.npu.hardware);
    const auto cycles = [](double t) { return to_count(t + 0.5); };
    for (std::size_t i = 0; i < operations.size(); ++i) {
        costs[i].start = cycles(times[i].start);
        costs[i].end = cycles(times[i].end);
        costs[i].stall = cycles(times[i].stall);
    }
}

void add_up(std::span<const npu::Operation> operations, NetworkCost& total) {
    for (std::size_t i = 0; i < operations.size(); ++i) {
        const ScheduledCost& s = total.operations[i];
        total.cycles_total = std::max(total.cycles_total, s.end);
        if (npu::is_kernel(operations[i].kind)) {
            total.kernel_cycles += s.cost.cycles;
            total.npu_cycles += s.cost.npu_cycles;
            total.stall_cycles += s.stall;
            total.contention_cycles += s.end - s.start - std::min(s.cost.cycles, s.end - s.start);
        } else {
            total.dma_cycles += s.cost.cycles;
        }
        total.macs += s.cost.macs;
        total.cycles_by_bound[static_cast<std::size_t>(s.cost.bound)] += s.cost.cycles;
        for (std::size_t area = 0; area < kMemoryAreas; ++area) {
            total.memory_cycles[area] += s.cost.memory_cycles[area];
            total.traffic[area] += s.cost.traffic[area];
        }
    }
}

}  // namespace

NetworkCost network_cost(std::span<const npu::Operation> operations, const SystemConfig& config) {
    NetworkCost total;
    total.operations.resize(operations.size());
    for (std::size_t i = 0; i < operations.size(); ++i) total.operations[i].cost = estimate(operations[i], config);
    overlap_neighbours(operations, total.operations);
    place(operations, config, total.operations);
    add_up(operations, total);
    return total;
}

host::Result<std::vector<npu::Operation>> decode_all(npu::Words stream) {
    std::vector<npu::Operation> operations;
    npu::Decoder decoder(stream);
    while (true) {
        TRY_ASSIGN(const auto operation, decoder.next());
        if (!operation) return operations;
        operations.push_back(*operation);
    }
}

}  // namespace talpa::npu_model
