#include <algorithm>

#include "npu_model/fast/plan.h"
#include "npu_model/fast/plan_cache.h"

namespace talpa::npu_model::fast {

const Microkernels& microkernels(Isa isa) {
#if defined(__x86_64__)
    if (isa == Isa::Avx512Vnni) return kAvx512Microkernels;
    if (isa == Isa::Avx2) return kAvx2Microkernels;
#endif
    static_cast<void>(isa);
    return kGenericMicrokernels;
}

namespace {

std::unique_ptr<Plan> make_plan(const Context& context, Isa isa) {
    switch (context.op.kind) {
        case npu::OpKind::Conv:
            return plan_conv(context, isa);
        case npu::OpKind::Depthwise:
            return plan_depthwise(context, isa);
        default:
            break;
    }
    if (auto plan = plan_byte_map(context, isa)) return plan;
    switch (context.op.kind) {
        case npu::OpKind::MaxPool:
        case npu::OpKind::AvgPool:
            return plan_pool(context, isa);
        default:
            return plan_elementwise(context, isa);
    }
}

}  // namespace

bool try_run(const Context& context) {
    const Isa isa = current_isa();
    if (PlanSlot* const slot = context.plan) {
        if (!slot->made || slot->isa != isa) *slot = {true, isa, make_plan(context, isa)};
        return slot->plan && slot->plan->run(context);
    }
    if (context.plans == nullptr) {
        const auto plan = make_plan(context, isa);
        return plan && plan->run(context);
    }
    const Plan* plan = context.plans->get(context, isa, make_plan);
    return plan != nullptr && plan->run(context);
}

}  // namespace talpa::npu_model::fast
