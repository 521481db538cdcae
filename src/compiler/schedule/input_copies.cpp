#include "compiler/schedule/input_copies.h"

#include <algorithm>
#include <array>

#include "compiler/schedule/lut_slots.h"

namespace talpa::compiler {
namespace {

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

}  // namespace

std::vector<bool> possible_input_copies(const Network& network) {
    std::vector<bool> possible(network.tensors.size());
    for (const TensorId t : network.inputs) possible[t] = true;
    const auto is_possible = [&](const View& v) { return v.tensor != kNoTensor && possible[v.tensor]; };
    for (const Step& s : network.steps)
        if ((is_possible(s.ifm) || is_possible(s.ifm2)) && !loses_something(s)) possible[s.ofm.tensor] = true;
    return possible;
}

}  // namespace talpa::compiler
