#include "compiler/schedule/planner.h"

#include <algorithm>
#include <optional>

#include "compiler/schedule/filters.h"
#include "compiler/schedule/maps.h"
#include "compiler/schedule/prepare.h"

namespace talpa::compiler {
namespace {

constexpr std::uint32_t kLongestGroup = 20, kManySteps = 130;  // beyond which the search would take seconds
constexpr std::uint32_t kRowChoices[] = {1, 2, 4, 6, 8, 12, 16, 28};

std::uint64_t padded(std::uint64_t bytes) {
    return (bytes + 15) / 16 * 16;
}

}  // namespace

Planner::Planner(const Network& network, const Target& target, BlockChooser& chooser,
                 const std::vector<Placement>& placements)
    : n_(network), target_(target), chooser_(chooser), placements_(placements), spilled_(network.tensors.size()) {
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
            Access a{v.tensor, &v, 0, moves};
            const Tensor& t = n_.tensors[v.tensor];
            const auto band = band_of(t, v);
            // What is never a ring may be addressed in any way.
            const bool anyhow = t.role == Tensor::Role::Constant || t.role == Tensor::Role::Input ||
                                (t.role == Tensor::Role::Output && !read[v.tensor]);
            if (!band || (band->step != 1 && v.height > 1)) {
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
    }
}

Block Planner::stripe_block(std::uint32_t index, std::uint32_t rows, bool buffered) {
    const std::uint64_t key = (std::uint64_t{index} << 32) | (std::uint64_t{rows} << 1) | (buffered ? 1 : 0);
    const auto found = blocks_.find(key);
    if (found != blocks_.end()) return found->second;
    const Step& s = n_.steps[index];
    // A stripe from the middle: its padding is that of most.
    const std::uint32_t first = std::min(rows, s.ofm.height - rows);
    npu::Operation op = rows_of_step(n_, placements_, s, first, first + rows);
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
    blocks_.emplace(key, block);
    return block;
}

std::uint64_t Planner::waiting_bytes(std::uint32_t begin, std::uint32_t end) const {
    std::uint64_t bytes = 0;
    for (std::size_t t = 0; t < tensors_.size(); ++t) {
        const TensorFacts& f = tensors_[t];
        if (!f.counted || spilled_[t]) continue;
        const bool before = f.first < begin || n_.tensors[t].role == Tensor::Role::Input;
        if (before ? f.last >= begin : (f.first < end && f.last >= end)) bytes += padded(n_.tensors[t].bytes());
    }
    return bytes;
}

std::optional<Group> Planner::evaluate(std::uint32_t begin, std::uint32_t end, std::uint32_t rows, std::uint64_t limit,
                                       Shortage* shortage) {
    Group g{begin, end, rows, {}, {}, {}, 0, 0};
    const auto too_large = [&] {
        if (shortage != nullptr && g.sram_bytes > limit &&
            (shortage->required == 0 || g.sram_bytes < shortage->required))
            *shortage = {g.sram_bytes, begin};
        return g.sram_bytes > limit;
    };
    g.sram_bytes = waiting_bytes(begin, end);
    if (rows == 0) {
        const Step& s = n_.steps[begin];
        // Both of its own tensors may begin and end here.
        for (std::size_t t = 0; t < tensors_.size(); ++t)
            if (tensors_[t].counted && !spilled_[t] && tensors_[t].first == begin && tensors_[t].last == begin &&
                n_.tensors[t].role != Tensor::Role::Input)
                g.sram_bytes += padded(n_.tensors[t].bytes());
        if (too_large()) return std::nullopt;
        g.stripes.push_back({begin, 0, s.ofm.height});
        const Block direct = stripe_block(begin, s.ofm.height, false);
        if (direct.height == 0) return std::nullopt;
        g.cycles = direct.inner_cycles;
        return g;
    }
    if (too_large()) return std::nullopt;

    const std::uint32_t count = end - begin;
    struct State {
        std::uint32_t produced = 0, largest = 0;
    };
    std::vector<State> state(count);
    std::vector<std::uint32_t> ring(n_.tensors.size());
    const auto inside = [&](TensorId t) {
        const TensorFacts& f = tensors_[t];
        return f.first >= begin && f.last < end && !f.writers.empty() && n_.tensors[t].role == Tensor::Role::Internal;
    };
    // Rows of tensor t below which no step of the group will look again.
    const auto lowest_needed = [&](TensorId t) {
        std::uint32_t low = UINT32_MAX;
        for (const std::uint32_t c : tensors_[t].readers) {
            if (c < begin || c >= end) continue;
            const std::uint32_t done = state[c - begin].produced, height = n_.steps[c].ofm.height;
            if (done == height) continue;
            for (const Access& a : steps_[c].reads) {
                if (a.tensor != t) continue;
                const std::uint32_t first = !a.moves                     ? 0
                                            : a.view == &n_.steps[c].ifm ? input_rows(n_.steps[c], done, done + 1).first
                                                                         : done;
                low = std::min(low, a.first_row + first);
            }
        }
        return low;
    };
    constexpr std::size_t kMostStripes = 4000;
    const std::uint32_t chunk = rows;
    const auto produce = [&](std::uint32_t index, std::uint32_t to) {
        State& s = state[index - begin];
        g.stripes.push_back({index, s.produced, to});
        const Access& w = steps_[index].write;
        if (inside(w.tensor)) {
            const std::uint32_t low = lowest_needed(w.tensor), high = w.first_row + to;
            if (low < high) ring[w.tensor] = std::max(ring[w.tensor], high - low);
            ring[w.tensor] = std::max(ring[w.tensor], to - s.produced);
        }
        s.largest = std::max(s.largest, to - s.produced);
        s.produced = to;
    };
    const auto ensure = [&](auto& self, std::uint32_t index, std::uint32_t to) -> bool {
        const std::uint32_t height = n_.steps[index].ofm.height;
        to = std::min(height, to);
        State& s = state[index - begin];
        const bool brings_in =
            n_.steps[index].op.kind == npu::OpKind::Dma && tensors_[steps_[index].reads[0].tensor].writers.empty();
        if (brings_in) {
            // Fetched a stripe ahead of its use.
            const std::uint32_t want = std::max(to, s.produced);
            while (s.produced < want) produce(index, std::min(height, std::max(want, s.produced + 1)));
            const std::uint32_t step = std::max(chunk, s.largest);
            if (s.produced < height && s.produced < to + step) produce(index, std::min(height, s.produced + step));
            return true;
        }
        if (s.produced >= to) return true;
        if (to < height) to = std::min(height, (to + 1) / 2 * 2);
        for (const Access& a : steps_[index].reads) {
            if (tensors_[a.tensor].writers.empty()) continue;
            std::uint32_t last = a.first_row + a.view->height;
            if (a.moves) {
                const std::uint32_t view_end =
                    a.view == &n_.steps[index].ifm ? input_rows(n_.steps[index], s.produced, to).end : to;
                last = a.first_row + view_end;
            }
            for (const std::uint32_t p : tensors_[a.tensor].writers) {
                if (p < begin || p >= index) continue;  // what comes later writes other parts
                const Access& w = steps_[p].write;
                if (last <= w.first_row) continue;
                if (!self(self, p, last - w.first_row)) return false;
            }
        }
        produce(index, to);
        return g.stripes.size() < kMostStripes;
    };
    // The last step leads; others that nobody in the group reads keep pace.
    const std::uint32_t leader = end - 1, height = n_.steps[leader].ofm.height;
    std::vector<std::uint32_t> others;
    for (std::uint32_t i = begin; i < leader; ++i) {
        const TensorFacts& f = tensors_[steps_[i].write.tensor];
        if (f.last == i || f.last >= end || f.writers.size() > 1) others.push_back(i);
    }
    for (std::uint32_t to = rows;; to += rows) {
        const bool last = to >= height;
        if (!ensure(ensure, leader, last ? height : to)) return std::nullopt;
        for (const std::uint32_t o : others) {
            const std::uint32_t h = n_.steps[o].ofm.height;
            const auto part = static_cast<std::uint32_t>(std::uint64_t{h} * std::min(to, height) / height);
            if (!ensure(ensure, o, last ? h : part)) return std::nullopt;
        }
        if (last) break;
    }
    for (std::size_t t = 0; t < ring.size(); ++t) {
        if (ring[t] == 0) continue;
        const Tensor& tensor = n_.tensors[t];
        const std::uint32_t kept = std::min(ring[t], tensor.height);
        if (kept < tensor.height) g.rings.emplace_back(static_cast<TensorId>(t), kept);
        if (tensors_[t].counted && !spilled_[t]) g.sram_bytes += padded(kept * tensor.row_bytes());
    }
    if (too_large()) return std::nullopt;
    std::vector<std::uint32_t> runs(count);
    for (const Stripe& s : g.stripes) ++runs[s.step - begin];
    for (std::uint32_t i = begin; i < end; ++i)
        if (n_.steps[i].filter && runs[i - begin] > 1 && target_.constants_in_dram()) {
            g.buffered.push_back(i);
            g.sram_bytes += steps_[i].weight_bytes;
        }
    if (too_large()) return std::nullopt;
    std::uint64_t dma = 0;
    for (const Stripe& s : g.stripes) {
        const bool buffered = n_.steps[s.step].filter && runs[s.step - begin] > 1 && target_.constants_in_dram();
        const Block b = stripe_block(s.step, s.end - s.first, buffered);
        if (b.height == 0) return std::nullopt;
        (n_.steps[s.step].op.kind == npu::OpKind::Dma ? dma : g.cycles) += b.inner_cycles;
    }
    g.cycles = std::max(g.cycles, dma);
    return g;
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
    placements_[best].region = 1;
    blocks_.clear();
    return true;
}

std::optional<Order> Planner::attempt(std::uint64_t limit, Shortage& shortage) {
    const auto count = static_cast<std::uint32_t>(n_.steps.size());
    struct Best {
        std::uint64_t cycles = UINT64_MAX;
        std::uint32_t begin = 0;
        std::uint32_t rows = 0;
    };
    std::vector<Best> best(count + 1);
    best[0].cycles = 0;
    // Steps that cannot run whole are what groups are for.
    std::vector<bool> tight(count);
    std::vector<std::optional<Group>> whole(count);
    std::vector<Shortage> lack(count);
    for (std::uint32_t i = 0; i < count; ++i) {
        whole[i] = evaluate(i, i + 1, 0, limit, &lack[i]);
        tight[i] = !whole[i] || n_.steps[i].op.kind == npu::OpKind::Dma;
    }
    // What the steps take alone, stripes or not: a group can hardly take less.
    std::vector<std::uint64_t> alone(count + 1);
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::uint64_t cycles =
            n_.steps[i].op.kind == npu::OpKind::Dma ? 0 : stripe_block(i, n_.steps[i].ofm.height, true).inner_cycles;
        alone[i + 1] = alone[i] + cycles - cycles / 50;
    }
    const std::uint32_t longest = count > kManySteps ? kLongestGroup / 2 : kLongestGroup;
    for (std::uint32_t end = 1; end <= count; ++end) {
        Best& to = best[end];
        bool worth = false;
        for (std::uint32_t length = 1; length <= std::min(end, longest); ++length) {
            const std::uint32_t begin = end - length;
            if (length > 1 && (!steps_[begin].stripes || !steps_[end - 1].stripes)) break;
            worth = worth || tight[begin];
            if (best[begin].cycles == UINT64_MAX) continue;
            if (length == 1) {
                if (whole[begin] && best[begin].cycles + whole[begin]->cycles < to.cycles)
                    to = {best[begin].cycles + whole[begin]->cycles, begin, 0};
                continue;
            }
            if (!worth || best[begin].cycles + (alone[end] - alone[begin]) >= to.cycles) continue;
            const std::uint32_t height = n_.steps[end - 1].ofm.height;
            for (const std::uint32_t rows : kRowChoices) {
                if (rows >= height) break;
                const auto g = evaluate(begin, end, rows, limit, &lack[begin]);
                if (!g) break;  // more rows take no less memory
                // Stripes cost something that the estimate does not see: waits and short runs of blocks.
                const std::uint64_t cycles = best[begin].cycles + g->cycles + g->stripes.size() * 20;
                if (cycles < to.cycles) to = {cycles, begin, rows};
            }
        }
        if (to.cycles == UINT64_MAX) {
            // Perhaps a longer group bridges it; remember the first that nothing ends at.
            continue;
        }
    }
    if (best[count].cycles == UINT64_MAX) {
        for (std::uint32_t i = 0; i < count; ++i)
            if (best[i].cycles != UINT64_MAX && best[i + 1].cycles == UINT64_MAX) {
                shortage = lack[i];
                shortage.step = i;
                if (shortage.required == 0) shortage.required = limit + 1;
            }
        return std::nullopt;
    }
    Order order;
    for (std::uint32_t end = count; end > 0;) {
        const Best& b = best[end];
        order.groups.push_back(*evaluate(b.begin, end, b.rows, limit, nullptr));
        end = b.begin;
    }
    std::reverse(order.groups.begin(), order.groups.end());
    order.spilled = spilled_;
    return order;
}

std::optional<Order> Planner::search(std::uint64_t limit, Shortage& shortage) {
    for (;;) {
        auto order = attempt(limit, shortage);
        if (order) return order;
        if (!spill_one(shortage.step)) return std::nullopt;
    }
}

}  // namespace talpa::compiler
