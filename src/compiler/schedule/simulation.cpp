#include "compiler/schedule/simulation.h"

#include <algorithm>

namespace talpa::compiler {
namespace {

constexpr std::size_t kMostStripes = 4000;

}  // namespace

bool Planner::Simulation::inside(TensorId t) const {
    const TensorFacts& f = p_.tensors_[t];
    return f.first >= begin_ && f.last < end_ && !f.writers.empty() && p_.n_.tensors[t].role == Tensor::Role::Internal;
}

// Rows of tensor t below which no step of the group will look again.
std::uint32_t Planner::Simulation::lowest_needed(TensorId t) const {
    std::uint32_t low = UINT32_MAX;
    for (const std::uint32_t c : p_.tensors_[t].readers) {
        if (c < begin_ || c >= end_) continue;
        const Step& s = p_.n_.steps[c];
        const std::uint32_t done = state_[c - begin_].produced;
        if (done == s.ofm.height) continue;
        for (const Access& a : p_.steps_[c].reads) {
            if (a.tensor != t) continue;
            const std::uint32_t first = !a.moves ? 0 : a.view == &s.ifm ? input_rows(s, done, done + 1).first : done;
            low = std::min(low, a.first_row + first);
        }
    }
    return low;
}

void Planner::Simulation::produce(std::uint32_t index, std::uint32_t to) {
    State& s = state_[index - begin_];
    const std::uint32_t from = s.produced;
    ++total_;
    round_.emplace_back(index, to - from);
    if (stripes_ != nullptr) stripes_->push_back({index, from, to});
    const Access& w = p_.steps_[index].write;
    if (inside(w.tensor)) {
        auto ring = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& k) { return k.tensor == w.tensor; });
        if (ring == kept_.end()) ring = kept_.insert(kept_.end(), {w.tensor, 0, 0});
        // From the lowest row that is needed, or written now though nobody reads it, to the highest that is there.
        ring->top = std::max(ring->top, w.first_row + to);
        const std::uint32_t low = std::min(lowest_needed(w.tensor), w.first_row + from);
        ring->rows = std::max(ring->rows, ring->top - low);
    }
    s.largest = std::max(s.largest, to - from);
    s.produced = to;
}

bool Planner::Simulation::ensure(std::uint32_t index, std::uint32_t to) {
    const Step& step = p_.n_.steps[index];
    const std::uint32_t height = step.ofm.height;
    to = std::min(height, to);
    State& s = state_[index - begin_];
    const bool brings_in =
        step.op.kind == npu::OpKind::Dma && p_.tensors_[p_.steps_[index].reads[0].tensor].writers.empty();
    if (brings_in) {
        // Fetched a stripe ahead of its use.
        const std::uint32_t want = std::max(to, s.produced);
        while (s.produced < want) produce(index, std::min(height, std::max(want, s.produced + 1)));
        const std::uint32_t ahead = std::max(rows_, s.largest);
        if (s.produced < height && s.produced < to + ahead) produce(index, std::min(height, s.produced + ahead));
        return true;
    }
    if (s.produced >= to) return true;
    if (to < height) to = std::min(height, (to + 1) / 2 * 2);
    for (const Access& a : p_.steps_[index].reads) {
        const TensorFacts& f = p_.tensors_[a.tensor];
        if (f.writers.empty()) continue;
        std::uint32_t last = a.first_row + a.view->height;
        if (a.moves) last = a.first_row + (a.view == &step.ifm ? input_rows(step, s.produced, to).end : to);
        for (const std::uint32_t p : f.writers) {
            if (p < begin_ || p >= index) continue;  // what comes later writes other parts
            const Access& w = p_.steps_[p].write;
            if (last <= w.first_row) continue;
            if (!ensure(p, last - w.first_row)) return false;
        }
    }
    produce(index, to);
    return total_ < kMostStripes;
}

bool Planner::Simulation::lead(std::uint32_t to, const std::vector<std::uint32_t>& others) {
    const std::uint32_t leader = end_ - 1, height = p_.n_.steps[leader].ofm.height;
    if (!ensure(leader, to)) return false;
    for (const std::uint32_t o : others) {
        const std::uint32_t h = p_.n_.steps[o].ofm.height;
        const auto part = static_cast<std::uint32_t>(std::uint64_t{h} * to / height);
        if (!ensure(o, to == height ? h : part)) return false;
    }
    return true;
}

void Planner::Simulation::count(Shape& shape, const Pattern& round, std::uint32_t times) {
    for (const auto& [step, rows] : round) {
        const auto run = std::find_if(shape.runs.begin(), shape.runs.end(),
                                      [&](const Shape::Run& r) { return r.step == step && r.rows == rows; });
        if (run == shape.runs.end())
            shape.runs.push_back({step, rows, times});
        else
            run->count += times;
    }
}

std::uint32_t Planner::Simulation::skip(Shape& shape, const std::vector<Pattern>& rounds) {
    constexpr std::size_t kLongestPeriod = 4;
    const std::size_t n = rounds.size();
    for (std::size_t period = 1; period <= kLongestPeriod && 3 * period <= n; ++period) {
        bool repeats = true;
        for (std::size_t i = 0; i < 2 * period && repeats; ++i)
            repeats = rounds[n - 1 - i] == rounds[n - 1 - i - period];
        if (!repeats) continue;
        std::vector<std::uint32_t> moved(state_.size());
        std::size_t stripes = 0;
        for (std::size_t i = n - period; i < n; ++i) {
            for (const auto& [step, rows] : rounds[i]) moved[step - begin_] += rows;
            stripes += rounds[i].size();
        }
        // Up to some periods before the first step would end.
        std::uint32_t times = UINT32_MAX;
        for (std::size_t i = 0; i < state_.size(); ++i) {
            const std::uint32_t left = p_.n_.steps[begin_ + i].ofm.height - state_[i].produced;
            times = std::min(times, moved[i] == 0 ? 0 : left / moved[i]);
        }
        constexpr std::uint32_t kFollowed = 2;
        if (times <= kFollowed) return 0;
        times -= kFollowed;
        for (std::size_t i = 0; i < state_.size(); ++i) state_[i].produced += times * moved[i];
        for (std::size_t i = n - period; i < n; ++i) count(shape, rounds[i], times);
        total_ += times * stripes;
        return times * static_cast<std::uint32_t>(period);
    }
    return 0;
}

void Planner::Simulation::run(Shape& shape, std::vector<Stripe>* stripes) {
    stripes_ = stripes;
    const std::uint32_t leader = end_ - 1, height = p_.n_.steps[leader].ofm.height;
    // Others that nobody in the group reads keep pace.
    std::vector<std::uint32_t> others;
    for (std::uint32_t i = begin_; i < leader; ++i) {
        const TensorFacts& f = p_.tensors_[p_.steps_[i].write.tensor];
        if (f.last == i || f.last >= end_ || f.writers.size() > 1) others.push_back(i);
    }
    std::vector<Pattern> rounds;
    bool may_skip = stripes == nullptr && others.empty();
    for (std::uint32_t to = std::min(rows_, height);; to = std::min(height, to + rows_)) {
        round_.clear();
        if (!lead(to, others) || total_ >= kMostStripes) return;
        count(shape, round_, 1);
        if (to == height) break;
        if (!may_skip) continue;
        rounds.push_back(round_);
        if (const std::uint32_t skipped = skip(shape, rounds); skipped != 0) {
            to += skipped * rows_;
            may_skip = false;
        }
    }
    for (const Kept& k : kept_)
        if (k.rows != 0) shape.rings.emplace_back(k.tensor, std::min(k.rows, p_.n_.tensors[k.tensor].height));
    std::sort(shape.rings.begin(), shape.rings.end());
    for (std::uint32_t i = begin_; i < end_; ++i) {
        std::uint32_t runs = 0;
        for (const Shape::Run& r : shape.runs)
            if (r.step == i) runs += r.count;
        if (p_.n_.steps[i].filter && runs > 1 && p_.target_.constants_in_dram()) {
            shape.buffered.push_back(i);
            shape.weight_bytes += p_.steps_[i].weight_bytes;
        }
    }
    shape.stripes = static_cast<std::uint32_t>(total_);
}

}  // namespace talpa::compiler
