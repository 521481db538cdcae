#include "npu_model/cycles/timeline.h"

#include <algorithm>
#include <deque>
#include <optional>

namespace talpa::npu_model {
namespace {

// A unit with its queue; the front job runs.
struct Unit {
    std::size_t depth = 1;
    std::deque<std::size_t> queue;
    double left = 0;  // of the front job, in cycles at full speed
    double idle_since = 0;

    [[nodiscard]] bool running() const { return !queue.empty(); }
    [[nodiscard]] bool full() const { return queue.size() >= depth; }
};

class Simulation {
  public:
    Simulation(std::span<const Job> jobs, const npu::Hardware& hardware) : jobs_(jobs), times_(jobs.size()) {
        kernels_.depth = npu::kMaxQueuedKernels;
        dma_.depth = hardware.max_dmas;
    }

    std::vector<JobTime> run() {
        while (true) {
            while (parse()) {
            }
            if (!kernels_.running() && !dma_.running()) break;
            advance();
        }
        return std::move(times_);
    }

  private:
    // Takes the next command if nothing holds it back.
    bool parse() {
        if (next_ == jobs_.size()) return false;
        const Job& job = jobs_[next_];
        if (job.kind == npu::OpKind::DmaWait && dma_.queue.size() > job.wait_for) return false;
        if (job.kind == npu::OpKind::KernelWait && kernels_.queue.size() > job.wait_for) return false;
        Unit* unit = job.kind == npu::OpKind::Dma ? &dma_ : npu::is_kernel(job.kind) ? &kernels_ : nullptr;
        if (unit == nullptr) {
            times_[next_].start = times_[next_].end = now_;
        } else {
            if (unit->full()) return false;
            unit->queue.push_back(next_);
            if (unit->queue.size() == 1) start(*unit);
        }
        ++next_;
        return true;
    }

    void start(Unit& unit) {
        const std::size_t job = unit.queue.front();
        unit.left = static_cast<double>(jobs_[job].cycles);
        times_[job].start = now_;
        times_[job].stall = now_ - unit.idle_since;
    }

    // Share of a memory that a running job keeps busy at full speed.
    [[nodiscard]] double demand(const Unit& unit, std::size_t area) const {
        if (!unit.running()) return 0;
        const Job& job = jobs_[unit.queue.front()];
        return job.cycles == 0
                   ? 0
                   : std::min(1.0, static_cast<double>(job.memory_cycles[area]) / static_cast<double>(job.cycles));
    }

    [[nodiscard]] double speed(const Unit& unit, const Unit& other) const {
        double speed = 1;
        for (std::size_t area = 0; area < kMemoryAreas; ++area) {
            const double wants = demand(unit, area);
            const double gets = std::max(0.5, 1 - demand(other, area));
            if (wants > gets) speed = std::min(speed, gets / wants);
        }
        return speed;
    }

    // To the end of whichever running job ends first.
    void advance() {
        const double kernel_speed = speed(kernels_, dma_), dma_speed = speed(dma_, kernels_);
        double step = 0;
        if (kernels_.running()) step = kernels_.left / kernel_speed;
        if (dma_.running()) step = kernels_.running() ? std::min(step, dma_.left / dma_speed) : dma_.left / dma_speed;
        now_ += step;
        progress(kernels_, step * kernel_speed);
        progress(dma_, step * dma_speed);
    }

    void progress(Unit& unit, double done) {
        constexpr double kEpsilon = 1e-6;
        if (!unit.running()) return;
        unit.left -= done;
        if (unit.left > kEpsilon) return;
        times_[unit.queue.front()].end = now_;
        unit.queue.pop_front();
        unit.idle_since = now_;
        if (unit.running()) start(unit);
    }

    std::span<const Job> jobs_;
    std::vector<JobTime> times_;
    Unit kernels_, dma_;
    std::size_t next_ = 0;
    double now_ = 0;
};

}  // namespace

std::vector<JobTime> simulate(std::span<const Job> jobs, const npu::Hardware& hardware) {
    return Simulation(jobs, hardware).run();
}

}  // namespace talpa::npu_model
