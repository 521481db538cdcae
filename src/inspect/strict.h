// Strict runs: tells the NPU model before each delegate call which bytes hold data (its inputs), so that the model can
// find reads of memory that nobody wrote.
#pragma once

#include "npu_model/model.h"
#include "runtime/method.h"

namespace talpa::inspect {

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
