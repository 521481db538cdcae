#include "inspect/strict.h"

#include <fmt/format.h>

#include "npu_model/strict/hazards.h"

namespace talpa::inspect {
namespace {

std::vector<npu_model::InitialisedRange> inputs_of(const runtime::EthosUDelegate& delegate) {
    std::vector<npu_model::InitialisedRange> ranges;
    for (std::uint32_t i = 0; i < delegate.inputs().count(); ++i) {
        const pte::IoRecord record = delegate.inputs()[i];
        ranges.push_back({static_cast<std::uint8_t>(record.region), {record.offset, record.size_bytes}});
    }
    return ranges;
}

}  // namespace

host::Result<void> check_hazards(const runtime::Method& method) {
    for (std::size_t i = 0; i < method.delegates().size(); ++i) {
        const runtime::EthosUDelegate& delegate = method.delegates()[i];
        npu_model::HazardOptions options;
        if (const npu::Hardware* hardware = npu::find_hardware(delegate.config())) options.hardware = hardware;
        options.initialised = inputs_of(delegate);
        TRY_ASSIGN(const auto hazards, npu_model::find_hazards(delegate.stream(), options));
        if (hazards.empty()) continue;
        return host::failure(ErrorCode::Hazard, "delegate {}: {}{}", i, hazards.front().text,
                             hazards.size() == 1 ? "" : fmt::format(" ({} more)", hazards.size() - 1));
    }
    return {};
}

void StrictObserver::before(const runtime::Step& step) {
    if (method_ == nullptr) return;
    const pte::InstructionView instruction(method_->view().instructions(step.chain)[step.instruction]);
    if (instruction.type() != pte::InstructionType::DelegateCall) return;
    const auto index = static_cast<std::size_t>(instruction.delegate_index());
    if (index >= method_->delegates().size()) return;
    model_.set_initialised(inputs_of(method_->delegates()[index]));
}

}  // namespace talpa::inspect
