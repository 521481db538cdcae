// The NPU model with a clock: runs are the model's, cycles are the cycle model's estimate of the stream, for the system
// and memory mode that the program was compiled for.
#pragma once

#include <map>

#include "base/host/error.h"
#include "npu_model/model.h"
#include "runtime/method.h"

namespace talpa::inspect {

class CostedDevice final : public npu::Device {
  public:
    explicit CostedDevice(const npu_model::ModelOptions& options) : model_(options) {}

    [[nodiscard]] npu_model::Model& model() { return model_; }
    /// Estimates the streams of a method that was loaded on this device; without it, runs report the model's estimate
    /// for its default.
    [[nodiscard]] host::Result<void> estimate(const runtime::Method& method);

    [[nodiscard]] std::uint32_t config() const override { return model_.config(); }
    [[nodiscard]] std::uint32_t id() const override { return model_.id(); }
    [[nodiscard]] Result<npu::JobStats> run(const npu::Job& job) override;

  private:
    npu_model::Model model_;
    std::map<const std::uint32_t*, std::uint64_t> cycles_;  ///< by stream
};

}  // namespace talpa::inspect
