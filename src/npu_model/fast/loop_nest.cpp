#include "npu_model/fast/loop_nest.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "npu_model/fast/memory_span.h"

namespace talpa::npu_model::fast {
namespace {

// Strides of one map for the four loops y, block of 16 channels, x, channel; 0 where the map is broadcast.
std::array<std::int64_t, 4> strides_of(const npu::FeatureMap& fm) {
    return {fm.height == 1 ? 0 : fm.stride_y, fm.depth == 1 ? 0 : block_stride(fm),
            fm.width == 1 ? 0 : pixel_stride(fm), fm.depth == 1 ? 0 : std::int64_t{fm.type.bytes}};
}

// Drops loops of one turn and joins loops that are one: outer stride = inner count * inner stride for all operands.
void simplify(std::vector<Loop>& loops, std::size_t operands) {
    std::erase_if(loops, [](const Loop& l) { return l.count == 1; });
    const std::size_t out = operands - 1;
    // Outermost first, equals in their order; a handful of loops (clang 19 refuses libstdc++'s stable_sort as
    // deprecated).
    for (std::size_t i = 1; i < loops.size(); ++i)
        for (std::size_t k = i; k > 0 && std::abs(loops[k].stride[out]) > std::abs(loops[k - 1].stride[out]); --k)
            std::swap(loops[k], loops[k - 1]);
    for (std::size_t i = loops.size(); i-- > 1;) {
        Loop& outer = loops[i - 1];
        const Loop& inner = loops[i];
        bool joins = true;
        for (std::size_t k = 0; k < operands; ++k) joins = joins && outer.stride[k] == inner.count * inner.stride[k];
        if (!joins) continue;
        outer = {outer.count * inner.count, inner.stride};
        loops.erase(loops.begin() + static_cast<std::ptrdiff_t>(i));
    }
}

}  // namespace

std::optional<std::vector<LoopNest>> loop_nests(std::span<const npu::FeatureMap* const> maps) {
    const npu::FeatureMap& out = *maps.back();
    std::array<std::array<std::int64_t, 4>, kMaxOperands> strides{};
    bool bricks = false;
    LoopNest nest;
    for (std::size_t k = 0; k < maps.size(); ++k) {
        if (!is_single_tile(*maps[k])) return std::nullopt;
        strides[k] = strides_of(*maps[k]);
        bricks = bricks || maps[k]->layout == npu::Layout::Nhcwb16;
        nest.start[k] = static_cast<std::int64_t>(maps[k]->base[0]);
    }
    const auto make = [&](std::int64_t first_block, std::int64_t blocks, std::int64_t channels) {
        LoopNest n = nest;
        const std::array<std::int64_t, 4> counts{out.height, blocks, out.width, channels};
        for (std::size_t d = 0; d < 4; ++d) {
            Loop loop{counts[d], {}};
            for (std::size_t k = 0; k < maps.size(); ++k) loop.stride[k] = strides[k][d];
            n.loops.push_back(loop);
        }
        for (std::size_t k = 0; k < maps.size(); ++k) n.start[k] += first_block * strides[k][1];
        simplify(n.loops, maps.size());
        return n;
    };
    if (!bricks) return std::vector{make(0, 1, out.depth)};
    std::vector<LoopNest> nests;
    const std::int64_t whole = out.depth / 16, rest = out.depth % 16;
    if (whole > 0) nests.push_back(make(0, whole, 16));
    if (rest > 0) nests.push_back(make(whole, 1, rest));
    return nests;
}

}  // namespace talpa::npu_model::fast
