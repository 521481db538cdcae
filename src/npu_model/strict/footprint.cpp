#include "npu_model/strict/footprint.h"

#include <algorithm>

namespace talpa::npu_model {

namespace {

Touch touch_of(const npu::Access& access, const npu::Box& box) {
    Touch t;
    t.access = access;
    t.box = box.merged();
    t.hull = t.box.hull();
    t.space = access.internal ? kSharedRam : access.region;
    return t;
}

std::vector<npu::Extent> runs_of(const Touch& t, npu::Extent window, Effort& effort) {
    if (!spend(effort, t.box.runs())) return {t.hull};
    std::vector<npu::Extent> runs;
    t.box.for_each_run([&](npu::Extent e) {
        if (e.overlaps(window)) runs.push_back(e);
    });
    std::sort(runs.begin(), runs.end(), [](npu::Extent a, npu::Extent b) { return a.begin < b.begin; });
    return runs;
}

}  // namespace

std::vector<Touch> footprint(const npu::Operation& op, const npu::Hardware& hardware) {
    std::vector<Touch> touches;
    npu::for_each_box(
        op,
        [&](const npu::Access& access, const npu::Box& box) {
            if (!box.empty()) touches.push_back(touch_of(access, box));
        },
        hardware.lut_base());
    return touches;
}

std::vector<Touch> touches_of(const npu::FeatureMap& fm, const npu::Volume& part) {
    std::vector<Touch> touches;
    const npu::FeatureMapBoxes boxes = npu::boxes_of(fm, part);
    for (unsigned i = 0; i < boxes.count; ++i)
        touches.push_back(touch_of({npu::Operand::Ifm, false, false, fm.region}, boxes.boxes[i]));
    return touches;
}

std::optional<npu::Extent> common_bytes(const Touch& a, const Touch& b, Effort& effort) {
    if (a.space != b.space || !a.hull.overlaps(b.hull)) return std::nullopt;
    const npu::Extent window{std::max(a.hull.begin, b.hull.begin), std::min(a.hull.end, b.hull.end)};
    if (a.box.runs() == 1 && b.box.runs() == 1) return window;
    const auto left = runs_of(a, window, effort), right = runs_of(b, window, effort);
    for (std::size_t i = 0, j = 0; i < left.size() && j < right.size();) {
        if (left[i].overlaps(right[j]))
            return npu::Extent{std::max(left[i].begin, right[j].begin), std::min(left[i].end, right[j].end)};
        if (left[i].end < right[j].end)
            ++i;
        else
            ++j;
    }
    return std::nullopt;
}

void IntervalSet::add(npu::Extent e) {
    if (e.empty()) return;
    auto it = intervals_.upper_bound(e.begin);
    if (it != intervals_.begin() && std::prev(it)->second >= e.begin) --it;
    while (it != intervals_.end() && it->first <= e.end) {
        e.begin = std::min(e.begin, it->first);
        e.end = std::max(e.end, it->second);
        it = intervals_.erase(it);
    }
    intervals_.emplace(e.begin, e.end);
}

void IntervalSet::remove(npu::Extent e) {
    if (e.empty()) return;
    auto it = intervals_.upper_bound(e.begin);
    if (it != intervals_.begin() && std::prev(it)->second > e.begin) --it;
    while (it != intervals_.end() && it->first < e.end) {
        const npu::Extent old{it->first, it->second};
        it = intervals_.erase(it);
        if (old.begin < e.begin) intervals_.emplace(old.begin, e.begin);
        if (old.end > e.end) intervals_.emplace(e.end, old.end);
    }
}

std::optional<npu::Extent> IntervalSet::first_gap(npu::Extent e) const {
    if (e.empty()) return std::nullopt;
    const auto next = intervals_.upper_bound(e.begin);
    if (next != intervals_.begin() && std::prev(next)->second > e.begin) {
        e.begin = std::prev(next)->second;
        if (e.empty()) return std::nullopt;
    }
    if (next != intervals_.end() && next->first < e.end) e.end = next->first;
    if (e.empty()) return std::nullopt;
    return e;
}

}  // namespace talpa::npu_model
