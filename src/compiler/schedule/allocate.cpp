#include "compiler/schedule/allocate.h"

#include <algorithm>
#include <numeric>

namespace talpa::compiler {
namespace {

constexpr std::uint64_t kAlignment = 16;

std::uint64_t padded(std::uint64_t size) {
    return (size + kAlignment - 1) / kAlignment * kAlignment;
}

bool meet(const LiveRange& a, const LiveRange& b) {
    return a.first <= b.last && b.first <= a.last;
}

class Search {
  public:
    explicit Search(std::vector<LiveRange>& ranges) : ranges_(ranges), neighbours_(ranges.size()) {
        for (std::size_t i = 0; i < ranges.size(); ++i)
            for (std::size_t j = 0; j < ranges.size(); ++j)
                if (i != j && ranges[i].size != 0 && ranges[j].size != 0 && meet(ranges[i], ranges[j]))
                    neighbours_[i].push_back(j);
    }

    // Each at the lowest address that is free for all of its life, in the given order.
    std::uint64_t place(const std::vector<std::size_t>& order) {
        std::vector<bool> placed(ranges_.size());
        std::uint64_t top = 0;
        for (const std::size_t i : order) {
            taken_.clear();
            for (const std::size_t n : neighbours_[i])
                if (placed[n]) taken_.push_back(n);
            std::sort(taken_.begin(), taken_.end(),
                      [&](std::size_t a, std::size_t b) { return ranges_[a].address < ranges_[b].address; });
            std::uint64_t at = 0;
            for (const std::size_t n : taken_) {
                if (at + padded(ranges_[i].size) <= ranges_[n].address) break;
                at = std::max(at, ranges_[n].address + padded(ranges_[n].size));
            }
            ranges_[i].address = at;
            placed[i] = true;
            top = std::max(top, at + padded(ranges_[i].size));
        }
        return top;
    }

    // Members of the set that holds the highest range up: it, and whatever lives beside it.
    std::vector<std::size_t> culprits(std::uint64_t top) const {
        std::vector<std::size_t> list;
        for (std::size_t i = 0; i < ranges_.size(); ++i)
            if (ranges_[i].size != 0 && ranges_[i].address + padded(ranges_[i].size) == top) {
                list.push_back(i);
                list.insert(list.end(), neighbours_[i].begin(), neighbours_[i].end());
                break;
            }
        return list;
    }

  private:
    std::vector<LiveRange>& ranges_;
    std::vector<std::vector<std::size_t>> neighbours_;
    std::vector<std::size_t> taken_;
};

}  // namespace

Peak peak_of(const std::vector<LiveRange>& ranges) {
    Peak peak;
    std::vector<std::pair<std::uint32_t, std::int64_t>> events;
    for (const LiveRange& r : ranges) {
        events.emplace_back(r.first, static_cast<std::int64_t>(padded(r.size)));
        events.emplace_back(r.last + 1, -static_cast<std::int64_t>(padded(r.size)));
    }
    std::sort(events.begin(), events.end());  // at one time, ends come before beginnings
    std::int64_t now = 0;
    for (const auto& [time, change] : events) {
        now += change;
        if (now > static_cast<std::int64_t>(peak.bytes)) peak = {static_cast<std::uint64_t>(now), time};
    }
    return peak;
}

std::uint64_t allocate(std::vector<LiveRange>& ranges, std::uint64_t enough, Effort effort) {
    const Peak peak = peak_of(ranges);
    enough = std::max(enough, peak.bytes);
    Search search(ranges);
    std::vector<std::size_t> order(ranges.size());
    std::iota(order.begin(), order.end(), 0);
    const auto by = [&](auto key) {
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key(a) > key(b); });
    };
    const auto life = [&](std::size_t i) { return std::uint64_t{ranges[i].last} - ranges[i].first; };
    std::vector<std::size_t> best_order;
    std::uint64_t best = UINT64_MAX;
    const auto attempt = [&](const std::vector<std::size_t>& candidate) {
        const std::uint64_t top = search.place(candidate);
        if (top < best) {
            best = top;
            best_order = candidate;
        }
        return top;
    };
    by([&](std::size_t i) { return ranges[i].size; });
    attempt(order);
    if (best > enough) {
        by([&](std::size_t i) { return life(i); });
        attempt(order);
    }
    if (best > enough) {
        by([&](std::size_t i) { return ranges[i].size * (life(i) + 1); });
        attempt(order);
    }
    // Exchange two of those that matter, keep what is no worse.
    std::uint64_t random = 0x9E3779B97F4A7C15u;
    const auto next = [&](std::size_t below) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        return static_cast<std::size_t>(random % below);
    };
    const std::size_t most = effort == Effort::Thorough ? 3000 : 300;
    const std::size_t rounds = std::min<std::size_t>(most, 200'000 / (ranges.size() + 1));
    std::vector<std::size_t> current = best_order;
    std::uint64_t now = ranges.empty() ? 0 : search.place(current);
    const std::uint64_t least = peak_of(ranges).bytes;
    for (std::size_t round = 0; round < rounds && best > std::max(enough, least); ++round) {
        const std::vector<std::size_t> set = search.culprits(now);
        if (set.size() < 2) break;
        std::vector<std::size_t> candidate = current;
        const std::size_t a = set[next(set.size())];
        const std::size_t b = next(4) == 0 ? candidate[next(candidate.size())] : set[next(set.size())];
        std::iter_swap(std::find(candidate.begin(), candidate.end(), a),
                       std::find(candidate.begin(), candidate.end(), b));
        const std::uint64_t top = attempt(candidate);
        if (top <= now) {
            current = std::move(candidate);
            now = top;
        } else {
            now = search.place(current);
        }
    }
    return ranges.empty() ? 0 : search.place(best_order);
}

}  // namespace talpa::compiler
