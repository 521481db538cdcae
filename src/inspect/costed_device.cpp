#include "inspect/costed_device.h"

#include "inspect/delegate_report.h"

namespace talpa::inspect {

host::Result<void> CostedDevice::estimate(const runtime::Method& method) {
    for (std::uint32_t i = 0; i < method.delegates().size(); ++i) {
        const runtime::EthosUDelegate& delegate = method.delegates()[i];
        TRY_ASSIGN(const auto operations, npu_model::decode_all(delegate.stream()));
        const auto config = compiled_for(method.view().delegate(i), delegate.config());
        cycles_[delegate.stream().data()] = npu_model::network_cost(operations, config).cycles_total;
    }
    return {};
}

Result<npu::JobStats> CostedDevice::run(const npu::Job& job) {
    TRY_ASSIGN(npu::JobStats stats, model_.run(job));
    // The model's own estimate is for one system; this one is for the system that the program names.
    if (const auto found = cycles_.find(job.stream.data()); found != cycles_.end()) stats.cycles = found->second;
    return stats;
}

}  // namespace talpa::inspect
