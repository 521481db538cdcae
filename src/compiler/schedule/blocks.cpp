#include "compiler/schedule/blocks.h"

#include <algorithm>
#include <vector>

#include "base/core/checked_math.h"
#include "npu/block.h"

namespace talpa::compiler {
namespace {

// Extents that cut `size` into different numbers of blocks, as multiples of `step`, the largest first.
std::vector<std::uint32_t> extents(std::uint32_t size, std::uint32_t step, std::uint32_t most) {
    std::vector<std::uint32_t> list;
    for (std::uint32_t count = 1; count <= size; ++count) {
        const std::uint32_t extent = round_up(ceil_div(size, count), step);
        if (extent > most) continue;
        if (list.empty() || list.back() != extent) list.push_back(extent);
        if (extent == step) break;
    }
    if (list.empty()) list.push_back(step);
    return list;
}

// Everything that the estimate depends on.
std::string key_of(const npu::Operation& op, std::uint32_t fixed_depth) {
    std::string key;
    const auto add = [&](auto... v) { (key.append(reinterpret_cast<const char*>(&v), sizeof v), ...); };
    const auto map = [&](const npu::FeatureMap& fm) {
        add(fm.height, fm.width, fm.depth, fm.type.bytes, fm.layout, fm.region);
    };
    map(op.ifm);
    map(op.ofm);
    if (npu::has_ifm2(op.kind) && !op.ifm2_is_scalar) map(op.ifm2);
    add(op.kind, op.kernel.height, op.kernel.width, op.kernel.stride_y, op.kernel.stride_x, op.kernel.dilation_y,
        op.kernel.dilation_x, op.kernel.part_kernel_first, op.padding.top, op.padding.left, op.upscale, op.acc_format,
        op.activation.function, op.weight_region, op.scale_region, op.weights[0].size, op.scales[0].size,
        op.ifm2_is_scalar, fixed_depth);
    return key;
}

// Cycles first; among equals what moves fewer bytes, then the larger block.
struct Merit {
    std::uint64_t inner = UINT64_MAX, edge = 0, bytes = 0;
    friend auto operator<=>(const Merit&, const Merit&) = default;
};

}  // namespace

void set_block(npu::Operation& op, const Block& block, const npu::Hardware& hardware) {
    op.block_height = block.height;
    op.block_width = block.width;
    op.block_depth = block.depth;
    if (op.kind == npu::OpKind::Conv) op.kernel.part_kernel_first = block.part_kernel_first;
    const npu::ShramLayout layout = npu::shram_layout(op, hardware);
    op.ib_end = static_cast<std::uint16_t>(layout.ib_end);
    op.ab_start = static_cast<std::uint16_t>(layout.ab_start);
    op.ifm2_ib_start = static_cast<std::uint16_t>(layout.ifm2_ib_start);
}

Block BlockChooser::choose(const npu::Operation& op, std::uint32_t fixed_depth) {
    std::string key = key_of(op, fixed_depth);
    const auto found = known_.find(key);
    if (found != known_.end()) return found->second;
    const Block block = search(op, fixed_depth);
    known_.emplace(std::move(key), block);
    return block;
}

Block BlockChooser::search(const npu::Operation& given, std::uint32_t fixed_depth) const {
    const npu::Hardware& hw = *target_.hardware;
    npu::Operation op = given;
    const bool elementwise = npu::is_elementwise(op.kind);
    std::vector<std::uint32_t> depths;
    if (fixed_depth != 0) {
        depths = {fixed_depth};
    } else {
        const std::uint32_t step = std::uint32_t{hw.ublock_depth} * hw.cores;
        const std::uint32_t most = std::min(npu::kMaxBlockDepth, round_up(op.ofm.depth, std::max(step, 16u)));
        for (std::uint32_t d = step; d <= most; d += d < 16 ? step : 16) depths.push_back(d);
    }
    const std::vector<std::uint32_t> heights = extents(op.ofm.height, hw.ublock_height, npu::kMaxBlockHeight),
                                     widths = extents(op.ofm.width, hw.ublock_width, npu::kMaxBlockWidth);
    Block best;
    Merit best_merit;
    for (const std::uint32_t depth : depths)
        for (const std::uint32_t height : heights)
            for (const std::uint32_t width : widths) {
                Block b{height, width, depth, op.kernel.part_kernel_first, 0, 0, {}};
                set_block(op, b, hw);
                const npu::ShramLayout layout = npu::shram_layout(op, hw);
                const bool two = elementwise && npu::has_ifm2(op.kind) && !op.ifm2_is_scalar;
                if (elementwise ? layout.ib_start + layout.ifm_banks * (two ? 2 : 1) > layout.end : !layout.fits())
                    continue;
                if (!elementwise && layout.ab_start + layout.acc_banks > layout.end) continue;
                const npu_model::OperationCost cost = npu_model::estimate(op, target_.config);
                b.cycles = cost.cycles;
                const std::uint64_t inside =
                    cost.npu_cycles - std::min(cost.npu_cycles, cost.fill_cycles + cost.drain_cycles);
                b.inner_cycles = std::max({inside, cost.memory_cycles[0], cost.memory_cycles[1]});
                b.memory_cycles = cost.memory_cycles;
                const Merit merit{b.inner_cycles, cost.fill_cycles + cost.drain_cycles,
                                  cost.traffic[0].bus_bytes() + cost.traffic[1].bus_bytes()};
                if (merit < best_merit) {
                    best_merit = merit;
                    best = b;
                }
            }
    return best;
}

}  // namespace talpa::compiler
