// Puts the stages of scheduling together: preparation, blocks, order of actions, weights, memory.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "compiler/schedule/allocate.h"
#include "compiler/schedule/filters.h"
#include "compiler/schedule/in_place.h"
#include "compiler/schedule/long_rows.h"
#include "compiler/schedule/lut_slots.h"
#include "compiler/schedule/maps.h"
#include "compiler/schedule/merit.h"
#include "compiler/schedule/plan.h"
#include "compiler/schedule/planner.h"
#include "compiler/schedule/prepare.h"
#include "compiler/schedule/staging.h"

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

// Does the step give the same for different inputs? What comes out of it is then no copy, whatever follows. A filter
// that adds two numbers, a pool of several, a table with two equal entries.
bool loses_something(const Step& s) {
    if (s.op.kind == npu::OpKind::ReduceSum) return true;
    if (s.table != nullptr && s.table->size() == kLutSlotBytes) {
        std::array<bool, kLutSlotBytes> seen{};
        for (const std::uint8_t entry : *s.table) {
            if (seen[entry]) return true;
            seen[entry] = true;
        }
    }
    if (s.filter) {
        // At a padded edge a window of one channel may hold one number only: a cumulative sum begins as its input does.
        if (s.op.padding.any() && (s.filter->depthwise || s.filter->shape.ifm_depth == 1)) return false;
        // In every channel: one that passes on what it gets could be all that anybody looks at.
        const std::size_t each = s.filter->weights.size() / s.filter->shape.ofm_depth;
        std::vector<std::size_t> used(s.filter->shape.ofm_depth);
        for (std::size_t i = 0; i < s.filter->weights.size(); ++i)
            if (s.filter->weights[i] != 0) ++used[i / each];
        return std::find(used.begin(), used.end(), 1u) == used.end();
    }
    const bool pools = s.op.kind == npu::OpKind::MaxPool || s.op.kind == npu::OpKind::AvgPool;
    return pools && !s.op.padding.any() && s.op.kernel.height * s.op.kernel.width > 1;
}

// Where the limit is what may be used, slices have to be worth their operations.
bool clearly_faster(const Merit& a, const Merit& b, const Target&) {
    constexpr std::uint64_t kWorth = 200;  // one part in so many
    return a.cycles + b.cycles / kWorth < b.cycles;
}

// Optimized for size: memory is never worth more than twice the time.
bool too_slow(std::uint64_t cycles, std::uint64_t fastest) {
    return cycles / 2 > fastest || cycles > 2 * fastest;
}

// Everything after the preparation, for one limit of SRAM.
class Scheduler {
  public:
    Scheduler(Plan& plan, const Target& target, OutputPlaces output_places, BlockChooser& chooser,
              FilterEncoder& encoder, const Judge& judge)
        : plan_(plan),
          n_(plan.network),
          target_(target),
          output_places_(output_places),
          chooser_(chooser),
          judge_(judge),
          encoder_(encoder),
          planner_(n_, target_, chooser_, regions()),
          possible_input_(possible_inputs()) {}

    /// `fastest`: cycles of the fastest plan seen, here or of another arrangement of the same network.
    host::Result<Merit> run(std::uint64_t& fastest) {
        // A tighter limit sometimes gives the better order, for the search reckons and the judge knows; and memory that
        // hardly saves time is not worth having. So: less and less, until it costs.
        std::optional<Solution> best;
        const bool unlimited = target_.sram_bytes >= kUnlimited, smallest = target_.optimize == Optimize::Size;
        const std::uint64_t costly = unlimited ? 12 : 30;  // one part in so many
        // Each limit is a search of its own; a network of thousands of steps has one.
        const std::size_t most_limits = std::clamp<std::size_t>(4000 / (n_.steps.size() + 1), 1, 8);
        std::uint64_t limit = target_.sram_bytes;
        // What is little need not become less, unless it has a price.
        const std::uint64_t least_limit = unlimited || smallest ? 0 : 4096;
        for (unsigned i = 0; i < most_limits; ++i) {
            auto found = solve(limit, i == 0 ? kAttempts : 2);
            if (!found) {
                if (i == 0) return std::unexpected(std::move(found.error()));
                break;
            }
            const std::uint64_t used = found->fast_bytes, cycles = found->cycles;
            fastest = std::min(fastest, cycles);
            const bool slow = smallest ? too_slow(cycles, fastest)
                                       : cycles > fastest + (unlimited ? std::min((fastest + kOfAJob) / costly, fastest)
                                                                       : fastest / costly);
            // What a tighter limit drives to DRAM is no saving either.
            const bool drives_out =
                !smallest && best && found->arena_bytes > best->arena_bytes && cycles >= best->cycles;
            if (!best || (smallest && too_slow(best->cycles, fastest)) ||
                (!slow && !drives_out && better(found->merit(), best->merit(), target_)))
                best = std::move(*found);
            if (slow || used <= least_limit) break;
            limit = used * 3 / 4;
        }
        std::tie(plan_.tensors, plan_.filters, plan_.tables, plan_.actions, plan_.constants, plan_.arena_bytes,
                 plan_.fast_bytes, plan_.peak_step) = std::move(best->built);
        // Once more for as little as can be: what fitted was enough for the search.
        buffers_ = std::move(best->buffers);
        best->fast_bytes = allocate_tensors(0, Effort::Thorough) + constants_in_sram();
        return best->merit();
    }

    // What a search lacks first is seldom all that it needs: more and more, until one finds a plan; then down again to
    // the least that does. After a run that ended for want of SRAM.
    [[nodiscard]] SramNeed sram_need() {
        constexpr std::size_t kManySteps = 600;  // of which a search takes seconds
        SramNeed need = lacking_;
        if (need.bytes == 0 || n_.steps.size() > kManySteps) return need;
        const auto suffices = [&](std::uint64_t bytes) {
            auto found = solve(bytes, kAttempts);
            if (found) need.peak_step = std::move(std::get<std::string>(found->built));
            return found.has_value();
        };
        std::uint64_t too_little = target_.sram_bytes, enough = need.bytes;
        constexpr unsigned kMostTries = 40;
        for (unsigned i = 0; !suffices(enough); ++i) {
            if (i == kMostTries) return need;
            too_little = enough;
            enough = std::max(lacking_.bytes, enough + enough / 32 + 16);
        }
        constexpr std::uint64_t kNear = 64;  // one part in so many
        while (enough - too_little > std::max<std::uint64_t>(16, enough / kNear)) {
            const std::uint64_t middle = (too_little + enough) / 2 / 16 * 16;
            if (middle <= too_little) break;
            (suffices(middle) ? enough : too_little) = middle;
        }
        need.bytes = enough;
        need.found = true;
        return need;
    }

  private:
    // Which weights are copied to SRAM ahead of their use: those of groups always.
    enum class Buffering : std::uint8_t { Groups, Gainful, Large };
    // What a plan consists of beside its network.
    using Built = std::tuple<std::vector<Placement>, std::vector<EncodedFilter>, std::vector<std::uint64_t>,
                             std::vector<Action>, std::vector<std::uint8_t>, std::uint64_t, std::uint64_t, std::string>;

    // A copy by DMA that must be done before action `use`.
    struct Load {
        Action action;
        std::uint32_t use = 0, last = 0;  // actions that need it
        std::uint32_t barrier = 0;        // not before this one
        double cycles = 0;
    };
    struct WeightBuffer {
        std::uint64_t offset = 0, bytes = 0;
        std::vector<std::uint32_t> steps;
    };
    struct Solution {
        Built built;
        std::uint64_t cycles = UINT64_MAX, fast_bytes = 0, arena_bytes = 0;
        std::size_t operations = 0;
        std::map<std::uint32_t, WeightBuffer> buffers;
        [[nodiscard]] Merit merit() const { return {cycles, fast_bytes, arena_bytes, operations}; }
    };
    static constexpr unsigned kAttempts = 10, kLoadAttempts = 4;
    static constexpr std::uint64_t kSlack = 20;  // one part in so many that an allocation may take above the least

    // The best plan within `available` bytes of SRAM.
    host::Result<Solution> solve(std::uint64_t available, unsigned attempts) {
        std::uint64_t limit = available;
        std::uint64_t least = UINT64_MAX;  // that an arrangement took
        std::string peak;
        for (unsigned attempt = 0; attempt < attempts; ++attempt) {
            Shortage shortage;
            const std::optional<Order> order = planner_.search(limit, shortage);
            if (!order) {
                if (least == UINT64_MAX) {
                    least = shortage.required + estimated_constants();
                    peak = describe(n_, n_.steps[std::min<std::size_t>(shortage.step, n_.steps.size() - 1)]);
                }
                break;
            }
            Solution best;
            std::uint64_t over = UINT64_MAX;
            for (const Buffering buffering : {Buffering::Groups, Buffering::Gainful, Buffering::Large}) {
                // Buffers that fit by their sum may not fit by their places: then fewer, later ones.
                std::uint64_t loads_limit = limit;
                std::uint64_t top = 0;
                for (unsigned i = 0; i < kLoadAttempts; ++i) {
                    TRY(build(*order, loads_limit, buffering));
                    const std::uint64_t fixed = constants_in_sram();
                    top = allocate_tensors(available - std::min(available, fixed), Effort::Quick) + fixed;
                    if (top <= available || buffering == Buffering::Groups) break;
                    loads_limit -= std::min(loads_limit, std::max(top - available, limit / 50));
                }
                if (top > available) {
                    over = std::min(over, top - available);
                    if (top < least) {
                        least = top;
                        peak = plan_.peak_step;
                    }
                    continue;
                }
                const std::uint64_t cycles = judge_(plan_);
                if (cycles >= best.cycles) continue;
                best = {Built{plan_.tensors, plan_.filters, plan_.tables, plan_.actions, plan_.constants,
                              plan_.arena_bytes, plan_.fast_bytes, plan_.peak_step},
                        cycles,
                        top,
                        plan_.arena_bytes,
                        plan_.actions.size(),
                        buffers_};
            }
            if (best.cycles != UINT64_MAX) return best;
            // The sum fits, the pieces do not: a little less, until they do.
            limit -= std::min(limit, std::max<std::uint64_t>(over, limit / 50));
        }
        lacking_ = {least, false, peak};
        return host::failure(ErrorCode::OutOfResources, "at least {} bytes of SRAM are required, {} are available",
                             least, available);
    }

    // Where all is in SRAM, weights and tables take their part of the limit.
    [[nodiscard]] std::uint64_t constants_in_sram() const {
        return target_.mode == MemoryMode::SramOnly && target_.sram_bytes < kUnlimited ? plan_.constants.size() : 0;
    }

    // The same before anything is encoded.
    [[nodiscard]] std::uint64_t estimated_constants() const {
        if (target_.mode != MemoryMode::SramOnly) return 0;
        std::uint64_t bytes = 0;
        std::set<const void*> seen;  // several steps may share one
        for (const Step& s : n_.steps) {
            if (s.filter && seen.insert(s.filter.get()).second) bytes += estimated_weight_bytes(s) + record_bytes(s);
            if (s.table && seen.insert(s.table.get()).second) bytes += s.table->size();
        }
        return bytes;
    }

    [[nodiscard]] std::vector<Placement> regions() const {
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

    [[nodiscard]] npu::Operation stripe_operation(const Stripe& stripe, bool buffered) const {
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

    host::Result<void> build(Order order, std::uint64_t limit, Buffering buffering) {
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

    // Bytes of SRAM in use at each action: tensors that live, without weights.
    [[nodiscard]] std::vector<std::uint64_t> sram_profile() const {
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

    [[nodiscard]] double copy_cycles(std::uint64_t bytes) const {
        const npu_model::MemoryTiming& from = target_.config.timing(target_.config.area_of(0));
        return static_cast<double>(bytes) / from.bytes_per_cycle + from.read_latency;
    }

    // Weights of steps that run whole: those that take longer read from DRAM as they are needed, or all of some size.
    bool buffer_more(Order& order, std::uint64_t limit, Buffering buffering) {
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
    void insert_loads(std::uint64_t limit) {
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

    // One block depth a step, for its weights are encoded for it: the best of the stripe that is most of the work.
    host::Result<void> choose_blocks(const Order& order) {
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
    void place_constants(const Order& order) {
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
            if (n_.tensors[i].role == Tensor::Role::Constant)
                plan_.tensors[i].address = constants.add(n_.tensors[i].data);
    }

    void load_weights(const Group& g) {
        const auto found = buffers_.find(g.begin);
        if (found == buffers_.end()) return;
        Load l;
        l.action = {Action::Kind::LoadWeights, g.begin, 0, 0, {}, 0, found->second.offset, 0, found->second.bytes};
        l.use = static_cast<std::uint32_t>(plan_.actions.size());
        l.last = l.use + static_cast<std::uint32_t>(g.stripes.size()) - 1;
        l.cycles = copy_cycles(found->second.bytes);
        loads_.push_back(l);
    }

    void add_stripe(const Stripe& stripe, LutSlots& slots) {
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

    // Tensors that may hold an input's very bytes, whatever those are: each may have been made of it by steps of which
    // none is sure to change something. A copy, a maximum with the least number, min(x, x), twice the negative.
    [[nodiscard]] std::vector<bool> possible_inputs() const {
        std::vector<bool> possible(n_.tensors.size());
        for (const TensorId t : n_.inputs) possible[t] = true;
        const auto is_possible = [&](const View& v) { return v.tensor != kNoTensor && possible[v.tensor]; };
        for (const Step& s : n_.steps)
            if ((is_possible(s.ifm) || is_possible(s.ifm2)) && !loses_something(s)) possible[s.ofm.tensor] = true;
        return possible;
    }

    // Lives of tensors and weight buffers, in actions; inputs from the start, outputs to the end. Returns the bytes of
    // SRAM that the result takes.
    std::uint64_t allocate_tensors(std::uint64_t enough, Effort effort) {
        std::vector<LiveRange> lives(n_.tensors.size());
        std::vector<bool> used(n_.tensors.size());
        const auto last_time = static_cast<std::uint32_t>(plan_.actions.size());
        std::map<std::uint32_t, LiveRange> buffer_lives;  // by first step of the group
        std::map<std::uint32_t, std::uint32_t> buffer_of;
        for (const auto& [begin, buffer] : buffers_)
            for (const std::uint32_t step : buffer.steps) buffer_of[step] = begin;
        for (std::uint32_t time = 0; time < plan_.actions.size(); ++time) {
            const Action& a = plan_.actions[time];
            if (a.kind == Action::Kind::LoadWeights) buffer_lives[a.step] = {a.bytes, time, time, 0};
            if (a.kind != Action::Kind::Run) continue;
            if (const auto found = buffer_of.find(a.step); found != buffer_of.end())
                buffer_lives[found->second].last = time;
            const Step& s = n_.steps[a.step];
            for (const View* v : {&s.ifm, &s.ifm2, &s.ofm}) {
                if (v->tensor == kNoTensor) continue;
                LiveRange& r = lives[v->tensor];
                if (!used[v->tensor]) r.first = time;
                r.last = time;
                used[v->tensor] = true;
            }
        }
        // An output equal to the input whose place it takes would look as if nothing had run (V35).
        const bool spare_inputs = output_places_ == OutputPlaces::NotOnInputs;
        std::vector<TensorId> place_of = places_taken_over(n_, plan_.tensors, plan_.actions);
        for (std::size_t i = 0; i < n_.tensors.size(); ++i)
            if (spare_inputs && n_.tensors[i].role == Tensor::Role::Output && possible_input_[i])
                place_of[i] = kNoTensor;
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
                if (!used[i] && t.role == Tensor::Role::Internal) continue;
                LiveRange r = lives[i];
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
                for (const auto& [begin, life] : buffer_lives) {
                    here.push_back(life);
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

    void place_buffer(std::uint32_t group, std::uint64_t address) {
        const WeightBuffer& b = buffers_[group];
        for (const std::uint32_t step : b.steps)
            plan_.filters[step].address = address + plan_.filters[step].constant_offset - b.offset;
        for (Action& a : plan_.actions)
            if (a.kind == Action::Kind::LoadWeights && a.step == group) a.address = address;
    }

    Plan& plan_;
    const Network& n_;
    const Target& target_;
    OutputPlaces output_places_;
    BlockChooser& chooser_;
    const Judge& judge_;
    FilterEncoder& encoder_;
    Planner planner_;
    std::vector<bool> possible_input_;  // by tensor
    SramNeed lacking_;                  // by what a search said that found nothing
    std::vector<Block> blocks_;
    std::map<std::uint32_t, WeightBuffer> buffers_;  // by first step of the group
    std::vector<Load> loads_;
    std::array<std::uint32_t, kLutSlots> slot_free_{};
};

}  // namespace

host::Result<Plan> schedule(Network network, const Target& target, const Judge& judge, OutputPlaces output_places,
                            SramNeed* need) {
    BlockChooser chooser(target);
    FilterEncoder encoder(*target.hardware);
    const bool unlimited = target.sram_bytes >= kUnlimited, smallest = target.optimize == Optimize::Size;
    fuse_tables(network);
    lengthen_rows(network, target, chooser);
    std::optional<Network> plain;
    if (unlimited || smallest) plain = network;
    stage_io(network, target, chooser);
    if (plain && plain->steps.size() == network.steps.size()) plain.reset();
    choose_layouts(network);
    Plan best;
    best.network = std::move(network);
    std::uint64_t fastest = UINT64_MAX;
    Scheduler first(best, target, output_places, chooser, encoder, judge);
    auto found = first.run(fastest);
    if (!found) {
        if (need != nullptr && found.error().code == ErrorCode::OutOfResources) *need = first.sram_need();
        return std::unexpected(std::move(found.error()));
    }
    Merit merit = *found;
    const auto plan_for = [&](Plan& plan, Network of) {
        plan = {};
        plan.network = std::move(of);
        // For size, all arrangements share one limit of time.
        if (!smallest) fastest = UINT64_MAX;
        return Scheduler(plan, target, output_places, chooser, encoder, judge).run(fastest);
    };
    const auto slow = [&](const Merit& m) { return smallest && too_slow(m.cycles, fastest); };
    // Another arrangement of the network is taken if its plan is the better one.
    const auto consider = [&](Network other, bool (*is_better)(const Merit&, const Merit&, const Target&)) {
        Plan plan;
        const auto its = plan_for(plan, std::move(other));
        if (!its) return;
        if (slow(merit))  // as is known now
            if (const auto again = plan_for(best, std::move(best.network))) merit = *again;
        if (slow(*its) || !(slow(merit) || is_better(*its, merit, target))) return;
        best = std::move(plan);
        merit = *its;
    };
    // Large filters in slices, so that a part of them can be fetched while other work runs.
    const auto consider_slices = [&] {
        Network sliced = best.network;
        if (!target.constants_in_dram() || !slice_filters(sliced)) return;
        consider(std::move(sliced), unlimited || smallest ? better : clearly_faster);
    };
    if (smallest) consider_slices();
    // Copies of inputs and outputs take SRAM. Where that has a price, the network without them may be the better one.
    if (plain) {
        choose_layouts(*plain);
        consider(std::move(*plain), better);
    }
    if (!smallest) consider_slices();
    return best;
}

}  // namespace talpa::compiler
