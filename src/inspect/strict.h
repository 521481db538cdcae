// Strict runs: the command streams of a method are searched for hazards once, and the NPU model is told before each
// delegate call which bytes hold data (its inputs), so that it can find reads of memory that nobody wrote.
#pragma once

#include "base/host/error.h"
#include "npu_model/model.h"
#include "runtime/method.h"

namespace talpa::inspect {

/// Hazard, with the first that there is in any delegate and how many there are, when operations of a stream may overlap
/// unsafely.
[[nodiscard]] host::Result<void> check_hazards(const runtime::Method& method);

/// Give it to the session, then `watch` the session's method. Model and method must outlive it.
class StrictObserver final : public runtime::Observer {
  public:
    explicit StrictObserver(npu_model::Model& model) : model_(model) {}
    void watch(const runtime::Method& method) { method_ = &method; }

    void before(const runtime::Step& step) override;
    void after(const runtime::Step&) override {}

  private:
    npu_model::Model& model_;
    const runtime::Method* method_ = nullptr;
};

}  // namespace talpa::inspect
