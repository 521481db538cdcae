#include "inspect/strict.h"

namespace talpa::inspect {

void StrictObserver::before(const runtime::Step& step) {
    if (method_ == nullptr) return;
    const pte::InstructionView instruction(method_->view().instructions(step.chain)[step.instruction]);
    if (instruction.type() != pte::InstructionType::DelegateCall) return;
    const auto index = static_cast<std::size_t>(instruction.delegate_index());
    if (index >= method_->delegates().size()) return;
    const pte::IoTable& inputs = method_->delegates()[index].inputs();
    std::vector<npu_model::InitialisedRange> ranges;
    for (std::uint32_t i = 0; i < inputs.count(); ++i) {
        const pte::IoRecord record = inputs[i];
        ranges.push_back({static_cast<std::uint8_t>(record.region), {record.offset, record.size_bytes}});
    }
    model_.set_initialised(std::move(ranges));
}

}  // namespace talpa::inspect
