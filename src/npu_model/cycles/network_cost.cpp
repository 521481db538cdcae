#include "npu_model/cycles/network_cost.h"

#include <algorithm>

namespace talpa::npu_model {
namespace {

// One of the two units that work off the stream: kernels, or DMA. `ends` holds the end of every job issued so far, in
// order.
class Unit {
  public:
    explicit Unit(std::size_t queue) : queue_(queue) {}

    /// Issues a job no earlier than `ready`; returns when it starts.
    std::uint64_t issue(std::uint64_t ready, std::uint64_t cycles) {
        const std::uint64_t start = std::max(ready, free_);
        free_ = start + cycles;
        ends_.push_back(free_);
        return start;
    }
    /// When at most `outstanding` jobs of this unit are left unfinished.
    [[nodiscard]] std::uint64_t at_most(std::size_t outstanding) const {
        return ends_.size() > outstanding ? ends_[ends_.size() - 1 - outstanding] : 0;
    }
    /// When the queue has room for another job.
    [[nodiscard]] std::uint64_t has_room() const { return at_most(queue_ - 1); }
    [[nodiscard]] std::uint64_t free() const { return free_; }

  private:
    std::size_t queue_;
    std::uint64_t free_ = 0;
    std::vector<std::uint64_t> ends_;
};

}  // namespace

NetworkCost network_cost(std::span<const npu::Operation> operations, const SystemConfig& config) {
    constexpr std::size_t kKernelQueue = 2;
    NetworkCost total;
    total.operations.reserve(operations.size());
    Unit kernels(kKernelQueue), dma(config.npu.axi_bytes == 16 ? 2 : 1);
    std::uint64_t now = 0;  // when the command parser reaches the next command

    for (const npu::Operation& op : operations) {
        ScheduledCost s;
        s.cost = estimate(op, config);
        s.start = s.end = now;
        if (op.kind == npu::OpKind::Dma) {
            now = std::max(now, dma.has_room());
            s.start = dma.issue(now, s.cost.cycles);
            s.end = s.start + s.cost.cycles;
            total.dma_cycles += s.cost.cycles;
        } else if (npu::is_kernel(op.kind)) {
            now = std::max(now, kernels.has_room());
            const std::uint64_t idle_since = kernels.free();
            s.start = kernels.issue(now, s.cost.cycles);
            s.end = s.start + s.cost.cycles;
            s.stall = s.start - idle_since;
            total.kernel_cycles += s.cost.cycles;
            total.npu_cycles += s.cost.npu_cycles;
            total.stall_cycles += s.stall;
        } else if (op.kind == npu::OpKind::DmaWait) {
            now = std::max(now, dma.at_most(op.parameter & 0xF));
            s.end = now;
        } else if (op.kind == npu::OpKind::KernelWait) {
            now = std::max(now, kernels.at_most(op.parameter & 0xF));
            s.end = now;
        }
        total.macs += s.cost.macs;
        total.cycles_by_bound[static_cast<std::size_t>(s.cost.bound)] += s.cost.cycles;
        for (std::size_t area = 0; area < kMemoryAreas; ++area) {
            total.memory_cycles[area] += s.cost.memory_cycles[area];
            total.traffic[area] += s.cost.traffic[area];
        }
        total.operations.push_back(s);
    }
    total.cycles_total = std::max(kernels.free(), dma.free());
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
