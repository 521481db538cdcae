// Which weights are copied to SRAM, and when: early enough for the DMA, no earlier.
#include <algorithm>

#include "compiler/schedule/plan_builder.h"

namespace talpa::compiler {

// Bytes of SRAM in use at each action: tensors that live, without weights.
std::vector<std::uint64_t> PlanBuilder::sram_profile() const {
    std::vector<std::uint32_t> first(n_.tensors.size(), UINT32_MAX), last(n_.tensors.size());
    for (std::uint32_t time = 0; time < plan_.actions.size(); ++time) {
        const Step& s = n_.steps[plan_.actions[time].step];
        for (const View* v : {&s.ifm, &s.ifm2, &s.ofm}) {
            if (v->tensor == kNoTensor) continue;
            first[v->tensor] = std::min(first[v->tensor], time);
            last[v->tensor] = time;
        }
    }
    std::vector<std::uint64_t> profile(plan_.actions.size() + 1);
    for (std::size_t t = 0; t < n_.tensors.size(); ++t) {
        const Tensor& tensor = n_.tensors[t];
        if (first[t] == UINT32_MAX || tensor.role == Tensor::Role::Constant ||
            plan_.tensors[t].region != target_.fast_region())
            continue;
        const std::uint32_t from = tensor.role == Tensor::Role::Input ? 0 : first[t];
        const std::size_t to = tensor.role == Tensor::Role::Output ? plan_.actions.size() - 1 : last[t];
        const std::uint64_t bytes =
            plan_.tensors[t].ring_rows != 0 ? plan_.tensors[t].ring_rows * tensor.row_bytes() : tensor.bytes();
        for (std::size_t k = from; k <= to; ++k) profile[k] += (bytes + 15) / 16 * 16;
    }
    return profile;
}

double PlanBuilder::copy_cycles(std::uint64_t bytes) const {
    const npu_model::MemoryTiming& from = target_.config.timing(target_.config.area_of(0));
    return static_cast<double>(bytes) / from.bytes_per_cycle + from.read_latency;
}

// Weights of steps that run whole: those that take longer read from DRAM as they are needed, or all of some size.
bool PlanBuilder::buffer_more(Order& order, std::uint64_t limit, Buffering buffering) {
    if (!target_.constants_in_dram() || buffering == Buffering::Groups) return false;
    std::vector<std::uint64_t> profile = sram_profile();
    for (const Load& l : loads_)
        for (std::uint32_t k = l.use; k <= l.last; ++k) profile[k] += l.action.bytes;
    std::vector<std::uint32_t> use_of(n_.steps.size());
    for (std::uint32_t time = 0; time < plan_.actions.size(); ++time) use_of[plan_.actions[time].step] = time;
    bool any = false;
    for (Group& g : order.groups) {
        const std::uint32_t step = g.begin;
        if (g.rows != 0 || !n_.steps[step].filter) continue;
        const std::uint32_t rows = n_.steps[step].ofm.height;
        const unsigned away = planner_.away(step, order.spilled);
        const std::uint64_t direct = planner_.stripe_block(step, rows, false, away).inner_cycles,
                            buffered = planner_.stripe_block(step, rows, true, away).inner_cycles;
        const std::uint64_t bytes = (plan_.filters[step].bytes.size() + 15) / 16 * 16;
        constexpr std::uint64_t kWorth = 300, kLarge = 4096;
        const bool gains = direct > buffered + kWorth;
        if (!gains && (buffering == Buffering::Gainful || bytes < kLarge)) continue;
        if (bytes + profile[use_of[step]] > limit) continue;
        g.buffered.push_back(step);
        any = true;
    }
    return any;
}

// Copies into their places in the order of actions. The DMA is one and works in order, so each must begin early
// enough for all behind it; as late as that allows, for until its use it takes memory.
void PlanBuilder::insert_loads(std::uint64_t limit) {
    const std::size_t count = plan_.actions.size();
    std::vector<double> start(count + 1);
    for (std::size_t k = 0; k < count; ++k)
        start[k + 1] = start[k] + static_cast<double>(plan_.actions[k].block.inner_cycles);
    std::vector<std::uint64_t> profile = sram_profile();
    for (const Load& l : loads_)
        for (std::uint32_t k = l.use; k <= l.last && k < profile.size(); ++k) profile[k] += l.action.bytes;
    // Backwards: when the DRAM must begin with what is still to come.
    std::vector<double> latest(loads_.size());
    double must_begin = start[count] + 1e18;
    std::size_t load = loads_.size();
    constexpr double kMargin = 1.1;
    for (std::size_t k = count; k-- > 0;) {
        const double direct = static_cast<double>(plan_.actions[k].block.memory_cycles[1]);
        if (must_begin < start[k + 1]) must_begin = std::min(must_begin, start[k + 1]) - direct;
        while (load > 0 && loads_[load - 1].use == k) {
            --load;
            must_begin = std::min(must_begin, start[k]) - loads_[load].cycles * kMargin;
            latest[load] = must_begin;
        }
    }
    std::map<std::uint32_t, std::vector<Action>> at;
    std::uint32_t last_issue = 0;
    for (std::size_t i = 0; i < loads_.size(); ++i) {
        const Load& l = loads_[i];
        const std::uint32_t barrier = std::max(l.barrier, std::min(last_issue, l.use));
        std::uint32_t k = l.use;
        while (k > barrier && start[k] > latest[i] && profile[k - 1] + l.action.bytes <= limit) --k;
        for (std::uint32_t j = k; j < l.use; ++j) profile[j] += l.action.bytes;
        at[k].push_back(l.action);
        last_issue = k;
    }
    std::vector<Action> merged;
    for (std::uint32_t time = 0; time < count; ++time) {
        if (const auto found = at.find(time); found != at.end())
            merged.insert(merged.end(), found->second.begin(), found->second.end());
        merged.push_back(plan_.actions[time]);
    }
    plan_.actions = std::move(merged);
}

}  // namespace talpa::compiler
