// The plan's actions: blocks, weights and tables, operations in their order.
#include "compiler/schedule/plan_builder.h"

#include <algorithm>

#include "compiler/schedule/input_copies.h"
#include "compiler/schedule/maps.h"

namespace talpa::compiler {
namespace {

// Region 0: every table, constant and filter once, 16-aligned.
class Constants {
  public:
    explicit Constants(std::vector<std::uint8_t>& bytes) : bytes_(bytes) {}
    std::uint64_t add(const std::vector<std::uint8_t>& data) {
        const auto [at, added] = known_.try_emplace(data, bytes_.size());
        if (added) {
            bytes_.insert(bytes_.end(), data.begin(), data.end());
            bytes_.resize((bytes_.size() + 15) / 16 * 16);
        }
        return at->second;
    }

  private:
    std::vector<std::uint8_t>& bytes_;
    std::map<std::vector<std::uint8_t>, std::uint64_t> known_;
};

}  // namespace

PlanBuilder::PlanBuilder(Plan& plan, const Target& target, OutputPlaces output_places, BlockChooser& chooser,
                         FilterEncoder& encoder)
    : plan_(plan),
      n_(plan.network),
      target_(target),
      output_places_(output_places),
      chooser_(chooser),
      encoder_(encoder),
      planner_(n_, target_, chooser_, regions()),
      possible_input_(possible_input_copies(n_)) {}

PlanBuilder::Draft PlanBuilder::draft() const {
    Draft d;
    d.plan.tensors = plan_.tensors;
    d.plan.filters = plan_.filters;
    d.plan.tables = plan_.tables;
    d.plan.actions = plan_.actions;
    d.plan.constants = plan_.constants;
    d.plan.arena_bytes = plan_.arena_bytes;
    d.plan.fast_bytes = plan_.fast_bytes;
    d.plan.peak_step = plan_.peak_step;
    d.buffers = buffers_;
    return d;
}

void PlanBuilder::take_up(Draft draft) {
    draft.plan.network = std::move(plan_.network);
    plan_ = std::move(draft.plan);
    buffers_ = std::move(draft.buffers);
}

std::vector<Placement> PlanBuilder::regions() const {
    std::vector<Placement> places(n_.tensors.size());
    for (std::size_t i = 0; i < n_.tensors.size(); ++i) {
        using Role = Tensor::Role;
        const Role role = n_.tensors[i].role;
        places[i].region = role == Role::Constant   ? 0
                           : role == Role::Internal ? target_.fast_region()
                                                    : std::uint8_t{1};
    }
    return places;
}

npu::Operation PlanBuilder::stripe_operation(const Stripe& stripe, bool buffered) const {
    const Step& s = n_.steps[stripe.step];
    npu::Operation op = rows_of_step(n_, plan_.tensors, s, stripe.first, stripe.end);
    op.cores = target_.hardware->cores;
    if (s.filter) {
        op.weights[0].size = estimated_weight_bytes(s);
        op.scales[0].size = record_bytes(s);
        op.weight_region = op.scale_region = buffered ? target_.fast_region() : 0;
    }
    return op;
}

host::Result<void> PlanBuilder::build(Order order, std::uint64_t limit, Buffering buffering) {
    plan_.tensors = regions();
    plan_.actions.clear();
    plan_.constants.clear();
    for (std::size_t t = 0; t < n_.tensors.size(); ++t)
        if (order.spilled[t]) plan_.tensors[t].region = 1;
    for (const Group& g : order.groups)
        for (const auto& [tensor, rows] : g.rings) plan_.tensors[tensor].ring_rows = rows;
    TRY(choose_blocks(order));
    plan_.filters = encoder_.encode(n_, blocks_);
    LutSlots slots;
    loads_.clear();
    const auto stripes = [&] {
        slots = {};
        loads_.clear();
        slot_free_ = {};
        plan_.actions.clear();
        for (const Group& g : order.groups) {
            load_weights(g);
            for (const Stripe& stripe : g.stripes) add_stripe(stripe, slots);
        }
    };
    place_constants(order);
    stripes();
    if (buffer_more(order, limit, buffering)) {
        place_constants(order);
        stripes();
    }
    insert_loads(limit);
    return {};
}

// One block depth a step, for its weights are encoded for it: the best of the stripe that is most of the work.
host::Result<void> PlanBuilder::choose_blocks(const Order& order) {
    blocks_.assign(n_.steps.size(), {});
    for (const Group& g : order.groups) {
        std::map<std::uint32_t, std::map<std::uint32_t, std::pair<std::uint32_t, Stripe>>> rows;
        for (const Stripe& s : g.stripes) {
            auto& [total, example] = rows[s.step][s.end - s.first];
            total += s.end - s.first;
            example = s;
        }
        for (const auto& [step, sizes] : rows) {
            if (n_.steps[step].op.kind == npu::OpKind::Dma) continue;
            const auto most = std::max_element(sizes.begin(), sizes.end(), [](const auto& a, const auto& b) {
                return a.second.first < b.second.first;
            });
            const bool buffered = std::count(g.buffered.begin(), g.buffered.end(), step) != 0;
            blocks_[step] = chooser_.choose(stripe_operation(most->second.second, buffered));
            if (blocks_[step].height == 0)
                return host::failure(ErrorCode::NotSupported, "no block of {} fits the shared RAM of {}",
                                     describe(n_, n_.steps[step]), target_.npu);
        }
    }
    return {};
}

// Region 0. What one DMA brings into SRAM lies side by side.
void PlanBuilder::place_constants(const Order& order) {
    plan_.constants.clear();
    for (EncodedFilter& f : plan_.filters) f.region = 0;
    Constants constants(plan_.constants);
    plan_.tables.assign(n_.steps.size(), 0);
    buffers_.clear();
    for (const Group& g : order.groups) {
        if (g.buffered.empty()) continue;
        WeightBuffer buffer;
        buffer.offset = plan_.constants.size();
        for (const std::uint32_t step : g.buffered) {
            EncodedFilter& f = plan_.filters[step];
            f.constant_offset = plan_.constants.size();
            f.region = target_.fast_region();
            plan_.constants.insert(plan_.constants.end(), f.bytes.begin(), f.bytes.end());
            plan_.constants.resize((plan_.constants.size() + 15) / 16 * 16);
            buffer.steps.push_back(step);
        }
        buffer.bytes = plan_.constants.size() - buffer.offset;
        buffers_[g.begin] = buffer;
    }
    for (std::size_t i = 0; i < n_.steps.size(); ++i) {
        if (n_.steps[i].filter && plan_.filters[i].region == 0)
            plan_.filters[i].constant_offset = plan_.filters[i].address = constants.add(plan_.filters[i].bytes);
        if (n_.steps[i].table) plan_.tables[i] = constants.add(*n_.steps[i].table);
    }
    for (std::size_t i = 0; i < n_.tensors.size(); ++i)
        if (n_.tensors[i].role == Tensor::Role::Constant) plan_.tensors[i].address = constants.add(n_.tensors[i].data);
}

void PlanBuilder::load_weights(const Group& g) {
    const auto found = buffers_.find(g.begin);
    if (found == buffers_.end()) return;
    Load l;
    l.action = {Action::Kind::LoadWeights, g.begin, 0, 0, {}, 0, found->second.offset, 0, found->second.bytes};
    l.use = static_cast<std::uint32_t>(plan_.actions.size());
    l.last = l.use + static_cast<std::uint32_t>(g.stripes.size()) - 1;
    l.cycles = copy_cycles(found->second.bytes);
    loads_.push_back(l);
}

void PlanBuilder::add_stripe(const Stripe& stripe, LutSlots& slots) {
    const Step& s = n_.steps[stripe.step];
    Action run{Action::Kind::Run, stripe.step, stripe.first, stripe.end, {}, 0, 0, 0, 0};
    if (s.op.kind != npu::OpKind::Dma) {
        const Block& typical = blocks_[stripe.step];
        npu::Operation op = stripe_operation(stripe, s.filter && plan_.filters[stripe.step].region != 0);
        run.block = chooser_.choose(op, s.filter ? typical.depth : 0);
    }
    const auto now = static_cast<std::uint32_t>(plan_.actions.size());
    if (s.table) {
        const auto found = slots.find(*s.table);
        run.lut_slot = found.slot;
        if (!found.loaded) {
            Load l;
            l.action = {Action::Kind::LoadTable, stripe.step, 0, 0, {}, found.slot, 0, 0, 0};
            l.use = l.last = now;
            l.cycles = copy_cycles(s.table->size());
            // Not before the last operation that read a table in those slots.
            const auto count = static_cast<std::uint32_t>(s.table->size() / kLutSlotBytes);
            for (std::uint32_t i = found.slot; i < found.slot + count; ++i)
                l.barrier = std::max(l.barrier, slot_free_[i]);
            if (target_.hardware->reserved_end_banks == 0) l.barrier = now;
            loads_.push_back(l);
        }
        const auto count = static_cast<std::uint32_t>(s.table->size() / kLutSlotBytes);
        for (std::uint32_t i = found.slot; i < found.slot + count; ++i) slot_free_[i] = now + 1;
    } else if (target_.hardware->reserved_end_banks == 0) {
        slots.forget_all();
    }
    plan_.actions.push_back(run);
}

}  // namespace talpa::compiler
