// What a model has worked out about streams that their owners say do not change (npu::Job::constant_id): the
// operations, decoded and found legal, in bounds and within the work limit for regions of exactly these sizes, each
// with its filter and its plan. Nothing in here points into the job's memory, so a promise that is broken gives old
// results, not stray accesses.
#pragma once

#include <deque>
#include <list>
#include <memory>

#include "npu/device.h"
#include "npu_model/fast/plan_cache.h"
#include "npu_model/filter.h"

namespace talpa::npu_model {

/// A DMA or kernel operation.
struct PreparedStep {
    npu::Operation op;
    std::shared_ptr<const Filter> filter;
    fast::PlanSlot plan;
};

struct PreparedJob {
    npu::Job job;  ///< of its regions only the sizes, and where the constants begin
    npu::JobStats stats;
    std::deque<PreparedStep> steps;
    std::size_t filter_bytes = 0;

    [[nodiscard]] bool is_of(const npu::Job& other) const;
};

class PreparedJobs {
  public:
    static constexpr std::size_t kMaxJobs = 16;
    static constexpr std::size_t kMaxSteps = 16384;  ///< of one job; whoever has more is decoded every time

    explicit PreparedJobs(std::size_t limit_bytes) : limit_bytes_(limit_bytes) {}
    /// Null: it was not prepared for regions like these.
    [[nodiscard]] PreparedJob* find(const npu::Job& job);
    /// Least recently used ones go when there are too many, or their filters are larger than the limit.
    void add(PreparedJob prepared);

  private:
    std::size_t limit_bytes_;
    std::list<PreparedJob> jobs_;  // most recently used first
};

}  // namespace talpa::npu_model
