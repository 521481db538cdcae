#include "compiler/schedule/planner.h"

#include <algorithm>
#include <optional>

#include "compiler/schedule/filters.h"
#include "compiler/schedule/in_place.h"
#include "compiler/schedule/maps.h"
#include "compiler/schedule/prepare.h"
#include "compiler/schedule/simulation.h"

namespace talpa::compiler {
namespace {

constexpr std::uint32_t kLongestGroup = 20, kManySteps = 130;  // beyond which the search would take seconds
constexpr std::uint32_t kRowChoices[] = {1, 2, 4, 6, 8, 12, 16, 28};

std::uint64_t padded(std::uint64_t bytes) {
    return (bytes + 15) / 16 * 16;
}

}  // namespace

Planner::Planner(const Network& network, const Target& target, BlockChooser& chooser, std::vector<Placement> placements)
    : n_(network),
      target_(target),
      chooser_(chooser),
      placements_(std::move(placements)),
      spilled_(network.tensors.size()) {
    collect();
}

void Planner::collect() {
    steps_.resize(n_.steps.size());
    tensors_.resize(n_.tensors.size());
    std::vector<bool> read(n_.tensors.size());
    for (const Step& s : n_.steps) {
        read[s.ifm.tensor] = true;
        if (s.ifm2.tensor != kNoTensor) read[s.ifm2.tensor] = true;
    }
    for (std::uint32_t i = 0; i < n_.steps.size(); ++i) {
        const Step& s = n_.steps[i];
        StepFacts& f = steps_[i];
        f.stripes = s.ofm.height > 1;
        const auto access = [&](const View& v, bool moves) {
            // One row for all of the result's.
            const bool repeats = v.height > 1 && v.stride_y == 0;
            Access a{v.tensor, &v, 0, moves && !repeats};
            const Tensor& t = n_.tensors[v.tensor];
            View row = v;
            if (repeats) row.height = 1;
            const auto band = band_of(t, row);
            // What is never a ring may be addressed in any way.
            const bool anyhow = t.role == Tensor::Role::Constant || t.role == Tensor::Role::Input ||
                                (t.role == Tensor::Role::Output && !read[v.tensor]);
            if (!band || (band->step != 1 && row.height > 1)) {
                if (!anyhow) f.stripes = false;
            } else {
                a.first_row = band->first;
            }
            return a;
        };
        f.reads.push_back(access(s.ifm, true));
        if (s.ifm2.tensor != kNoTensor) f.reads.push_back(access(s.ifm2, !s.op.ifm2_broadcast_h));
        f.write = access(s.ofm, true);
        if (s.filter) f.weight_bytes = padded(estimated_weight_bytes(s)) + padded(record_bytes(s));
        for (const Access* a : {&f.write, &f.reads[0], f.reads.size() > 1 ? &f.reads[1] : &f.write}) {
            TensorFacts& t = tensors_[a->tensor];
            t.first = std::min(t.first, i);
            t.last = std::max(t.last, i);
        }
        tensors_[f.write.tensor].writers.push_back(i);
        for (const Access& a : f.reads)
            if (auto& readers = tensors_[a.tensor].readers; readers.empty() || readers.back() != i)
                readers.push_back(i);
    }
    const auto last = static_cast<std::uint32_t>(n_.steps.size());
    for (std::size_t t = 0; t < n_.tensors.size(); ++t) {
        using Role = Tensor::Role;
        const Role role = n_.tensors[t].role;
        if (role == Role::Input) tensors_[t].first = 0;
        if (role == Role::Output) tensors_[t].last = last;
        tensors_[t].counted =
            role != Role::Constant && placements_[t].region == target_.fast_region() && tensors_[t].first != UINT32_MAX;
        tensors_[t].movable =
            tensors_[t].counted && role == Role::Internal && target_.mode == MemoryMode::DedicatedSram;
    }
    waiting_.resize(n_.steps.size() + 1);
    alone_.resize(n_.steps.size());
    for (TensorId t = 0; t < n_.tensors.size(); ++t) {
        const TensorFacts& f = tensors_[t];
        if (!f.counted) continue;
        const bool given = n_.tensors[t].role == Tensor::Role::Input;
        for (std::uint32_t at = given ? 0 : f.first + 1; at <= f.last; ++at) waiting_[at].push_back(t);
        if (!given && f.first == f.last) alone_[f.first].push_back(t);
    }
    find_givers();
}

void Planner::find_givers() {
    for (std::uint32_t i = 0; i < n_.steps.size(); ++i) {
        const Step& s = n_.steps[i];
        const TensorFacts& result = tensors_[s.ofm.tensor];
        if (!result.counted || result.writers.size() != 1 || result.first != i) continue;
        for (const View* v : {&s.ifm, &s.ifm2}) {
            if (v->tensor == kNoTensor) continue;
            const TensorFacts& operand = tensors_[v->tensor];
            if (!operand.counted || operand.last != i || !may_take_place(n_, s, *v)) continue;
            StepFacts& f = steps_[i];
            f.giver = v->tensor;
            for (const auto* touching : {&operand.writers, &operand.readers})
                for (const std::uint32_t other : *touching)
                    if (other != i) f.giver_alone = std::max(f.giver_alone, other + 1);
            break;
        }
    }
}

unsigned Planner::away(std::uint32_t index, const std::vector<bool>& spilled) const {
    const Step& s = n_.steps[index];
    return (spilled[s.ifm.tensor] ? kIfmAway : 0u) |
           (s.ifm2.tensor != kNoTensor && spilled[s.ifm2.tensor] ? kIfm2Away : 0u) |
           (spilled[s.ofm.tensor] ? kOfmAway : 0u);
}

unsigned Planner::away(std::uint32_t index, std::uint32_t begin, std::uint32_t end, unsigned before,
                       unsigned behind) const {
    const auto gone = [&](TensorId t) {
        if (t == kNoTensor) return false;
        if (spilled_[t]) return true;
        const TensorFacts& f = tensors_[t];
        if (!f.movable) return false;
        return (before == kInArena && f.first < begin && f.last >= begin) ||
               (behind == kInArena && f.first < end && f.last >= end);
    };
    const Step& s = n_.steps[index];
    return (gone(s.ifm.tensor) ? kIfmAway : 0u) | (gone(s.ifm2.tensor) ? kIfm2Away : 0u) |
           (gone(s.ofm.tensor) ? kOfmAway : 0u);
}

const Block& Planner::stripe_block(std::uint32_t index, std::uint32_t rows, bool buffered, unsigned away) {
    const std::uint64_t key =
        (std::uint64_t{index} << 32) | (std::uint64_t{rows} << 4) | (away << 1) | (buffered ? 1 : 0);
    const auto found = blocks_.find(key);
    if (found != blocks_.end()) return found->second;
    const Step& s = n_.steps[index];
    // A stripe from the middle: its padding is that of most.
    const std::uint32_t first = std::min(rows, s.ofm.height - rows);
    std::array<std::pair<TensorId, std::uint8_t>, 3> regions{};
    const auto put = [&](std::size_t i, TensorId t, unsigned flag) {
        if (t == kNoTensor) return;
        regions[i] = {t, placements_[t].region};
        if ((away & flag) != 0) placements_[t].region = 1;
    };
    put(0, s.ifm.tensor, kIfmAway);
    put(1, s.ifm2.tensor, kIfm2Away);
    put(2, s.ofm.tensor, kOfmAway);
    npu::Operation op = rows_of_step(n_, placements_, s, first, first + rows);
    for (std::size_t i = regions.size(); i-- > 0;)
        if (i != 1 || s.ifm2.tensor != kNoTensor) placements_[regions[i].first].region = regions[i].second;
    op.cores = target_.hardware->cores;
    if (s.filter) {
        op.weights[0].size = estimated_weight_bytes(s);
        op.scales[0].size = record_bytes(s);
        op.weight_region = op.scale_region = buffered ? target_.fast_region() : 0;
    }
    Block block;
    if (op.kind == npu::OpKind::Dma) {
        const npu_model::OperationCost cost = npu_model::estimate(op, target_.config);
        block.height = 1;
        block.cycles = block.inner_cycles = cost.cycles;
    } else {
        block = chooser_.choose(op);
    }
    return blocks_.emplace(key, block).first->second;
}

std::uint64_t Planner::waiting_bytes(std::uint32_t begin, std::uint32_t end, unsigned before, unsigned behind) const {
    std::uint64_t bytes = 0;
    const auto add = [&](TensorId t, unsigned where) {
        if (spilled_[t] || (where == kInArena && tensors_[t].movable)) return;
        bytes += padded(n_.tensors[t].bytes());
    };
    for (const TensorId t : waiting_[begin]) add(t, before);
    for (const TensorId t : waiting_[end])
        if (tensors_[t].first >= begin && n_.tensors[t].role != Tensor::Role::Input) add(t, behind);
    return bytes;
}

std::uint64_t Planner::taken_over_bytes(std::uint32_t begin, std::uint32_t end, std::uint32_t rows, unsigned before,
                                        unsigned behind) const {
    std::uint64_t bytes = 0;
    for (std::uint32_t i = begin; i < end; ++i) {
        const TensorId giver = steps_[i].giver, result = n_.steps[i].ofm.tensor;
        if (giver == kNoTensor || steps_[i].giver_alone > begin || spilled_[giver] || spilled_[result]) continue;
        const TensorFacts &from = tensors_[giver], &to = tensors_[result];
        const bool waits = to.last >= end;
        // What is made and used up in a group is a few rows.
        if (rows != 0 && !waits) continue;
        if ((before == kInArena && from.movable) || (behind == kInArena && waits && to.movable)) continue;
        bytes += padded(n_.tensors[result].bytes());
    }
    return bytes;
}

bool Planner::linked(std::uint32_t begin, std::uint32_t end) const {
    return std::any_of(waiting_[begin].begin(), waiting_[begin].end(),
                       [&](TensorId t) { return tensors_[t].movable && tensors_[t].last >= end; });
}

const Planner::Shape& Planner::shape(std::uint32_t begin, std::uint32_t end, std::uint32_t rows) {
    const std::uint64_t key = (std::uint64_t{begin} << 32) | (std::uint64_t{rows} << 16) | (end - begin);
    const auto [at, added] = shapes_.try_emplace(key);
    if (added) Simulation(*this, begin, end, rows).run(at->second, nullptr);
    return at->second;
}

std::optional<Planner::Cost> Planner::evaluate(std::uint32_t begin, std::uint32_t end, std::uint32_t rows,
                                               unsigned before, unsigned behind, std::uint64_t limit,
                                               Shortage* shortage) {
    std::uint64_t bytes = waiting_bytes(begin, end, before, behind);
    if (rows == 0)
        for (const TensorId t : alone_[begin])
            if (!spilled_[t]) bytes += padded(n_.tensors[t].bytes());
    bytes -= taken_over_bytes(begin, end, rows, before, behind);
    const auto too_large = [&] {
        if (shortage != nullptr && bytes > limit && (shortage->required == 0 || bytes < shortage->required))
            *shortage = {bytes, begin};
        return bytes > limit;
    };
    if (rows == 0) {
        if (too_large()) return std::nullopt;
        const Block& direct =
            stripe_block(begin, n_.steps[begin].ofm.height, false, away(begin, begin, end, before, behind));
        if (direct.height == 0) return std::nullopt;
        return Cost{direct.inner_cycles, 1};
    }
    if (too_large()) return std::nullopt;
    const Shape& group = shape(begin, end, rows);
    for (const auto& [t, kept] : group.rings)
        if (tensors_[t].counted && !spilled_[t]) bytes += padded(kept * n_.tensors[t].row_bytes());
    bytes += group.weight_bytes;
    if (too_large()) return std::nullopt;
    if (group.stripes == 0) return Cost{UINT64_MAX, 0};
    std::uint64_t dma = 0, cycles = 0;
    for (const Shape::Run& run : group.runs) {
        const bool buffered = std::count(group.buffered.begin(), group.buffered.end(), run.step) != 0;
        const Block& b = stripe_block(run.step, run.rows, buffered, away(run.step, begin, end, before, behind));
        if (b.height == 0) return std::nullopt;
        (n_.steps[run.step].op.kind == npu::OpKind::Dma ? dma : cycles) += b.inner_cycles * run.count;
    }
    return Cost{std::max(cycles, dma), group.stripes};
}

bool Planner::spill_one(std::uint32_t step) {
    if (target_.mode != MemoryMode::DedicatedSram) return false;
    // The largest that only waits; then the largest of all.
    TensorId best = kNoTensor;
    std::uint64_t best_merit = 0;
    for (TensorId t = 0; t < tensors_.size(); ++t) {
        const TensorFacts& f = tensors_[t];
        if (!f.counted || spilled_[t] || f.first > step || f.last < step) continue;
        const bool used =
            n_.steps[step].ifm.tensor == t || n_.steps[step].ifm2.tensor == t || n_.steps[step].ofm.tensor == t;
        const std::uint64_t merit = n_.tensors[t].bytes() * (used ? 1 : 4) + 1;
        if (merit > best_merit) {
            best_merit = merit;
            best = t;
        }
    }
    if (best == kNoTensor) return false;
    spilled_[best] = true;
    return true;
}

std::optional<Order> Planner::attempt(std::uint64_t limit, unsigned states, Shortage& shortage) {
    const auto count = static_cast<std::uint32_t>(n_.steps.size());
    struct Best {
        std::uint64_t cycles = UINT64_MAX;
        std::uint32_t begin = 0, rows = 0;
        unsigned before = kInSram;
    };
    std::vector<std::array<Best, 2>> best(count + 1);
    best[0][kInSram].cycles = 0;
    // Steps that cannot run whole are what groups are for.
    std::vector<bool> tight(count);
    std::vector<Shortage> lack(count);
    for (std::uint32_t i = 0; i < count; ++i)
        tight[i] = !evaluate(i, i + 1, 0, kInSram, kInSram, limit, &lack[i]) || n_.steps[i].op.kind == npu::OpKind::Dma;
    // What the steps take alone, stripes or not: a group can hardly take less.
    std::vector<std::uint64_t> alone(count + 1);
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::uint64_t cycles =
            n_.steps[i].op.kind == npu::OpKind::Dma
                ? 0
                : stripe_block(i, n_.steps[i].ofm.height, true, away(i, spilled_)).inner_cycles;
        alone[i + 1] = alone[i] + cycles - cycles / 50;
    }
    const auto improve = [&](Best& to, const Best& from, std::uint32_t begin, unsigned before, std::uint32_t rows,
                             const Cost& cost) {
        // Stripes cost something that the estimate does not see: waits and short runs of blocks.
        const std::uint64_t cycles = from.cycles + cost.cycles + (rows == 0 ? 0 : cost.stripes * 20);
        if (cycles < to.cycles) to = {cycles, begin, rows, before};
    };
    const std::uint32_t longest = count > kManySteps ? kLongestGroup / 2 : kLongestGroup;
    for (std::uint32_t end = 1; end <= count; ++end) {
        bool worth = false;
        for (std::uint32_t length = 1; length <= std::min(end, longest); ++length) {
            const std::uint32_t begin = end - length;
            if (length > 1 && (!steps_[begin].stripes || !steps_[end - 1].stripes)) break;
            worth = worth || tight[begin];
            if (length > 1 && !worth) continue;
            const bool same = linked(begin, end);
            for (unsigned before = 0; before < states; ++before)
                for (unsigned behind = 0; behind < (end == count ? 1 : states); ++behind) {
                    const Best& from = best[begin][before];
                    Best& to = best[end][behind];
                    if (from.cycles == UINT64_MAX || (same && before != behind)) continue;
                    if (length == 1) {
                        Shortage* why = before + behind == 0 ? &lack[begin] : nullptr;
                        if (const auto cost = evaluate(begin, end, 0, before, behind, limit, why))
                            improve(to, from, begin, before, 0, *cost);
                        continue;
                    }
                    const std::uint32_t height = n_.steps[end - 1].ofm.height;
                    for (const std::uint32_t rows : kRowChoices) {
                        if (rows >= height || from.cycles + (alone[end] - alone[begin]) >= to.cycles) break;
                        const auto cost = evaluate(begin, end, rows, before, behind, limit, &lack[begin]);
                        if (!cost) break;  // more rows take no less memory
                        if (cost->stripes != 0) improve(to, from, begin, before, rows, *cost);
                    }
                }
        }
    }
    if (best[count][kInSram].cycles == UINT64_MAX) {
        const auto reached = [&](std::uint32_t i) {
            return best[i][kInSram].cycles != UINT64_MAX || best[i][kInArena].cycles != UINT64_MAX;
        };
        for (std::uint32_t i = 0; i < count; ++i)
            if (reached(i) && !reached(i + 1)) {
                shortage = lack[i];
                shortage.step = i;
                if (shortage.required == 0) shortage.required = limit + 1;
            }
        return std::nullopt;
    }
    Order order;
    order.spilled = spilled_;
    unsigned behind = kInSram;
    for (std::uint32_t end = count; end > 0;) {
        const Best& b = best[end][behind];
        Group g{b.begin, end, b.rows, {}, {}, {}};
        if (b.rows == 0) {
            g.stripes.push_back({b.begin, 0, n_.steps[b.begin].ofm.height});
        } else {
            Shape exact;
            Simulation(*this, b.begin, end, b.rows).run(exact, &g.stripes);
            for (const auto& [t, kept] : exact.rings)
                if (kept < n_.tensors[t].height) g.rings.emplace_back(t, kept);
            g.buffered = std::move(exact.buffered);
        }
        order.groups.push_back(std::move(g));
        if (b.before == kInArena)
            for (const TensorId t : waiting_[b.begin])
                if (tensors_[t].movable) order.spilled[t] = true;
        behind = b.before;
        end = b.begin;
    }
    std::reverse(order.groups.begin(), order.groups.end());
    return order;
}

std::optional<Order> Planner::search(std::uint64_t limit, Shortage& shortage) {
    spilled_.assign(n_.tensors.size(), false);
    if (auto order = attempt(limit, 1, shortage)) return order;
    if (target_.mode != MemoryMode::DedicatedSram) return std::nullopt;
    for (;;) {
        auto order = attempt(limit, 2, shortage);
        if (order) return order;
        if (!spill_one(shortage.step)) return std::nullopt;
    }
}

}  // namespace talpa::compiler
