// What deploy shows: section headers and one line a container for people, with a progress line on a terminal; one JSON
// object a line for programs. And the plan.
#pragma once

#include <chrono>
#include <mutex>

#include "topo/deploy/pipeline.h"

namespace talpa::topo {

class DeployOutput : public DeployEvents {
  public:
    explicit DeployOutput(bool json);
    ~DeployOutput() override { end(); }
    void stage(std::string_view title) override;
    void note(std::string_view text) override;
    void method(const Method& method) override;
    void said(std::string_view line) override;
    void container(const std::string& name, std::string_view what) override;
    void transfer(const TransferProgress& progress) override;
    void transfer_done(const TransferPlan& plan) override;
    void success(const std::string& message);
    /// Takes the progress line away.
    void end();

  private:
    bool json_, terminal_, shown_ = false;
    std::uint64_t sent_ = 0;
    std::chrono::steady_clock::time_point last_{}, started_{};
    std::mutex mutex_;
};

[[nodiscard]] std::string plan_plain(const DeployPlan& plan);
[[nodiscard]] std::string plan_json(const DeployPlan& plan);

}  // namespace talpa::topo
