// The functional model of the Ethos-U as a device: runs a command stream in stream order and leaves in the regions, bit
// for bit, what the hardware would (ethos-u65, sections 3 to 7). Waits and block dependencies have no effect here; the
// hazard checker looks at them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "npu/device.h"
#include "npu_model/cycles/stream_cycles.h"
#include "npu_model/filter.h"
#include "npu_model/findings.h"
#include "npu_model/thread_pool.h"

namespace talpa::npu_model {

namespace fast {
class PlanCache;
}
class PreparedJobs;

enum class Kernels : std::uint8_t {
    Reference,  ///< the plain kernels, written to be read
    Fast,       ///< fast kernels where there are any
};

enum class DataChecks : std::uint8_t {
    Off,     ///< nothing beyond bounds; overflow is counted by the reference kernels only
    Strict,  ///< reference kernels; stops at the first operation that npu::check refuses (block layout too) and at the
             ///< first finding: overflow, reads of memory never written
};

/// Bytes of regions other than 0 that hold data when a run starts: the inputs.
struct InitialisedRange {
    std::uint8_t region = 1;
    npu::Range range;
};

struct ModelOptions {
    std::uint32_t config = npu::kConfigU65_256;  ///< which part: the CONFIG word (section 2.2)
    std::uint32_t id = npu::kIdU65;
    unsigned threads = 1;
    Kernels kernels = Kernels::Fast;
    DataChecks checks = DataChecks::Off;
    /// Upper limit of the multiply-accumulates, elements and bytes that one run may move; a stream of a few words can
    /// ask for centuries. A hundred times the largest network that we know.
    std::uint64_t work_limit = 1'000'000'000'000;
    std::size_t filter_cache_bytes = 128u << 20;
    /// The tables in the shared RAM survive from run to run, as in a device that is handed one operation at a time.
    bool keeps_shared_ram = false;
    /// What the cycles in JobStats are an estimate for, with the NPU of `config`.
    SystemConfig system = default_system_config();
    /// Called after each DMA and kernel operation, on the thread that called `run`, with its results in the job's
    /// regions.
    std::function<void(const npu::Operation& op, const npu::Job& job)> after_operation = {};
};

class Model final : public npu::Device {
  public:
    explicit Model(const ModelOptions& options = {});
    ~Model();

    [[nodiscard]] std::uint32_t config() const override { return options_.config; }
    [[nodiscard]] std::uint32_t id() const override { return options_.id; }

    /// Errors, each with the byte offset in the stream and the operation: CommandStream (malformed, or a program that
    /// no hardware runs), WeightStream, OutOfBounds, OutOfResources (work limit), NpuFault (strict: a finding),
    /// DelegateIncompatible (the job's CONFIG word, where it has one, is another part's).
    /// Each operation is checked whole before it touches memory. One run at a time.
    [[nodiscard]] Result<npu::JobStats> run(const npu::Job& job) override;

    /// Strict checks: what holds data before each of the following runs, besides region 0.
    void set_initialised(std::vector<InitialisedRange> ranges) { initialised_ = std::move(ranges); }
    /// What the last run noticed about its data.
    [[nodiscard]] const std::vector<Finding>& findings() const { return findings_.all(); }
    /// The shared RAM as the last run left it; empty before the first.
    [[nodiscard]] Bytes shared_ram() const { return shram_; }
    [[nodiscard]] const FilterCache& filter_cache() const { return cache_; }

  private:
    class Run;

    ModelOptions options_;
    FilterCache cache_;
    ThreadPool pool_;
    Findings findings_;
    std::unique_ptr<fast::PlanCache> plans_;
    std::unique_ptr<PreparedJobs> prepared_;
    std::vector<InitialisedRange> initialised_;
    std::vector<std::uint8_t> shram_;
    StreamCycles cycles_;
};

}  // namespace talpa::npu_model
