#include "npu_model/fast/plan_cache.h"

#include "npu_model/fast/packed_weights.h"

namespace talpa::npu_model::fast {

const Plan* PlanCache::get(const Context& context, Isa isa, Make make) {
    if (entries_.size() >= kMaxEntries) entries_.clear();
    std::shared_ptr<PackedWeights> packed;
    if (context.filter != nullptr) {
        static_cast<void>(packed_weights(*context.filter));
        packed = context.filter->packed;
    }
    const auto [entry, is_new] = entries_.try_emplace(context.op.offset_bytes);
    Entry& e = entry->second;
    if (is_new || e.isa != isa || e.packed != packed || !(e.op == context.op))
        e = Entry{context.op, isa, std::move(packed), make(context, isa)};
    return e.plan.get();
}

}  // namespace talpa::npu_model::fast
