#include "compiler/schedule/in_place.h"

#include <algorithm>

namespace talpa::compiler {
namespace {

// When a tensor is touched: first, last by the step that touches it last, and last by any other.
struct Touches {
    bool any = false, by_others = false;
    std::uint32_t first = 0, step = 0, last = 0, last_of_others = 0;

    void add(std::uint32_t by, std::uint32_t time) {
        if (!any) first = time;
        if (any && by != step) {
            by_others = true;
            last_of_others = last;
        }
        any = true;
        step = by;
        last = time;
    }
};

bool same_elements(const View& a, const View& b) {
    return a.height == b.height && a.width == b.width && a.depth == b.depth && a.offset == b.offset &&
           (a.height == 1 || a.stride_y == b.stride_y) && (a.width == 1 || a.stride_x == b.stride_x);
}

bool same_memory(const Tensor& a, const Tensor& b) {
    return a.height == b.height && a.width == b.width && a.depth == b.depth && a.type.bytes == b.type.bytes &&
           a.layout == b.layout;
}

}  // namespace

bool may_take_place(const Network& n, const Step& s, const View& operand) {
    const TensorId t = operand.tensor, result = s.ofm.tensor;
    if (!npu::is_elementwise(s.op.kind) || t == kNoTensor || t == result) return false;
    const Tensor::Role role = n.tensors[t].role;
    if (role != Tensor::Role::Input && role != Tensor::Role::Internal) return false;
    if (!same_memory(n.tensors[t], n.tensors[result])) return false;
    // Whatever else the step reads of it must be the same elements too.
    for (const View* other : {&s.ifm, &s.ifm2})
        if (other->tensor == t && !same_elements(*other, s.ofm)) return false;
    return true;
}

std::vector<TensorId> places_taken_over(const Network& n, const std::vector<Placement>& placements,
                                        const std::vector<Action>& actions) {
    std::vector<Touches> touches(n.tensors.size());
    for (std::uint32_t time = 0; time < actions.size(); ++time) {
        const Action& a = actions[time];
        if (a.kind != Action::Kind::Run) continue;
        const Step& s = n.steps[a.step];
        for (const View* v : {&s.ifm, &s.ifm2, &s.ofm})
            if (v->tensor != kNoTensor) touches[v->tensor].add(a.step, time);
    }
    std::vector<std::uint32_t> writers(n.tensors.size());
    for (const Step& s : n.steps) ++writers[s.ofm.tensor];

    std::vector<TensorId> taken(n.tensors.size(), kNoTensor);
    std::vector<bool> given(n.tensors.size());
    for (std::uint32_t i = 0; i < n.steps.size(); ++i) {
        const Step& s = n.steps[i];
        const TensorId result = s.ofm.tensor;
        if (writers[result] != 1 || placements[result].ring_rows != 0) continue;
        const auto can_give = [&](const View& v) {
            const TensorId t = v.tensor;
            if (!may_take_place(n, s, v) || given[t]) return false;
            if (placements[t].region != placements[result].region || placements[t].ring_rows != 0) return false;
            const Touches& at = touches[t];
            return at.any && at.step == i && (!at.by_others || at.last_of_others < touches[result].first);
        };
        for (const View* v : {&s.ifm, &s.ifm2}) {
            if (!can_give(*v)) continue;
            taken[result] = v->tensor;
            given[v->tensor] = true;
            break;
        }
    }
    return taken;
}

}  // namespace talpa::compiler
