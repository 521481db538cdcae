// Where a plan's tensors and weight buffers lie.
#include <algorithm>
#include <set>

#include "compiler/schedule/in_place.h"
#include "compiler/schedule/plan_builder.h"

namespace talpa::compiler {
namespace {

constexpr std::uint64_t kSlack = 20;  // one part in so many that an allocation may take above the least

}  // namespace

std::uint64_t PlanBuilder::place(std::uint64_t available, Effort effort) {
    const std::uint64_t fixed = constants_in_sram();
    return allocate_tensors(available - std::min(available, fixed), effort) + fixed;
}

// Where all is in SRAM, weights and tables take their part of the limit.
std::uint64_t PlanBuilder::constants_in_sram() const {
    return target_.mode == MemoryMode::SramOnly && target_.sram_bytes < kUnlimited ? plan_.constants.size() : 0;
}

// The same before anything is encoded.
std::uint64_t PlanBuilder::estimated_constants() const {
    if (target_.mode != MemoryMode::SramOnly) return 0;
    std::uint64_t bytes = 0;
    std::set<const void*> seen;  // several steps may share one
    for (const Step& s : n_.steps) {
        if (s.filter && seen.insert(s.filter.get()).second) bytes += estimated_weight_bytes(s) + record_bytes(s);
        if (s.table && seen.insert(s.table.get()).second) bytes += s.table->size();
    }
    return bytes;
}

// In actions, from the first that touches it to the last.
PlanBuilder::Lives PlanBuilder::lives() const {
    Lives l{std::vector<std::optional<LiveRange>>(n_.tensors.size()), {}};
    std::map<std::uint32_t, std::uint32_t> buffer_of;
    for (const auto& [begin, buffer] : buffers_)
        for (const std::uint32_t step : buffer.steps) buffer_of[step] = begin;
    for (std::uint32_t time = 0; time < plan_.actions.size(); ++time) {
        const Action& a = plan_.actions[time];
        if (a.kind == Action::Kind::LoadWeights) l.buffers[a.step] = {a.bytes, time, time, 0};
        if (a.kind != Action::Kind::Run) continue;
        if (const auto found = buffer_of.find(a.step); found != buffer_of.end()) l.buffers[found->second].last = time;
        const Step& s = n_.steps[a.step];
        for (const View* v : {&s.ifm, &s.ifm2, &s.ofm}) {
            if (v->tensor == kNoTensor) continue;
            auto& r = l.tensors[v->tensor];
            if (!r) r = LiveRange{.first = time};
            r->last = time;
        }
    }
    return l;
}

// Inputs live from the start, outputs to the end. Returns the bytes of SRAM that the result takes.
std::uint64_t PlanBuilder::allocate_tensors(std::uint64_t enough, Effort effort) {
    const Lives life = lives();
    const auto last_time = static_cast<std::uint32_t>(plan_.actions.size());
    // An output equal to the input whose place it takes would look as if nothing had run (V35).
    const bool spare_inputs = output_places_ == OutputPlaces::NotOnInputs;
    std::vector<TensorId> place_of = places_taken_over(n_, plan_.tensors, plan_.actions);
    for (std::size_t i = 0; i < n_.tensors.size(); ++i)
        if (spare_inputs && n_.tensors[i].role == Tensor::Role::Output && possible_input_[i]) place_of[i] = kNoTensor;
    const auto root_of = [&](std::size_t i) {
        while (place_of[i] != kNoTensor) i = place_of[i];
        return i;
    };
    std::uint64_t fast_top = 0;
    for (const std::uint8_t region : {std::uint8_t{1}, std::uint8_t{2}}) {
        const bool fast = region == target_.fast_region();
        std::vector<LiveRange> here;
        std::vector<std::size_t> which;
        std::map<std::size_t, std::size_t> range_of;  // by first tensor of a place
        for (std::size_t i = 0; i < n_.tensors.size(); ++i) {
            const Tensor& t = n_.tensors[i];
            if (t.role == Tensor::Role::Constant || plan_.tensors[i].region != region) continue;
            if (!life.tensors[i] && t.role == Tensor::Role::Internal) continue;
            LiveRange r = life.tensors[i].value_or(LiveRange{});
            if (t.role == Tensor::Role::Input) r.first = 0;
            if (t.role == Tensor::Role::Output) {
                r.last = last_time;
                if (spare_inputs && possible_input_[i]) r.first = 0;
            }
            r.size = plan_.tensors[i].ring_rows != 0 ? plan_.tensors[i].ring_rows * t.row_bytes() : t.bytes();
            which.push_back(i);
            const auto [at, is_new] = range_of.try_emplace(root_of(i), here.size());
            if (is_new) {
                here.push_back(r);
            } else {
                LiveRange& place = here[at->second];
                place.first = std::min(place.first, r.first);
                place.last = std::max(place.last, r.last);
            }
        }
        const std::size_t places_here = here.size();
        std::vector<std::uint32_t> groups;
        if (fast)
            for (const auto& [begin, range] : life.buffers) {
                here.push_back(range);
                groups.push_back(begin);
            }
        const std::uint64_t tight = peak_of(here).bytes;
        const std::uint64_t top = allocate(here, fast ? std::min(enough, tight + tight / kSlack) : 0, effort);
        for (const std::size_t i : which) plan_.tensors[i].address = here[range_of[root_of(i)]].address;
        for (std::size_t i = 0; i < groups.size(); ++i) place_buffer(groups[i], here[places_here + i].address);
        (region == 1 ? plan_.arena_bytes : plan_.fast_bytes) = top;
        if (!fast) continue;
        fast_top = top;
        const std::uint32_t time = std::min(peak_of(here).time, last_time == 0 ? 0 : last_time - 1);
        if (!plan_.actions.empty()) plan_.peak_step = describe(n_, n_.steps[plan_.actions[time].step]);
    }
    plan_.copy_on_input = std::any_of(n_.outputs.begin(), n_.outputs.end(), [&](TensorId output) {
        return possible_input_[output] && std::any_of(n_.inputs.begin(), n_.inputs.end(), [&](TensorId input) {
                   const Placement &o = plan_.tensors[output], &i = plan_.tensors[input];
                   return o.region == i.region && o.address < i.address + n_.tensors[input].bytes() &&
                          i.address < o.address + n_.tensors[output].bytes();
               });
    });
    return fast_top;
}

void PlanBuilder::place_buffer(std::uint32_t group, std::uint64_t address) {
    const WeightBuffer& b = buffers_[group];
    for (const std::uint32_t step : b.steps)
        plan_.filters[step].address = address + plan_.filters[step].constant_offset - b.offset;
    for (Action& a : plan_.actions)
        if (a.kind == Action::Kind::LoadWeights && a.step == group) a.address = address;
}

}  // namespace talpa::compiler
