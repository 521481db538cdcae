#include "npu/block.h"

#include <algorithm>

#include "base/core/checked_math.h"

namespace talpa::npu {

namespace {

constexpr std::uint32_t kBankBytes = 1024;

std::uint32_t double_buffer_banks(std::uint64_t bytes, std::uint32_t granule) {
    return static_cast<std::uint32_t>(round_up<std::uint64_t>(2 * ceil_div<std::uint64_t>(bytes, kBankBytes), granule));
}

std::uint32_t ifm_granule(const Operation& op, const BankGranules& g) {
    const bool elementwise = is_elementwise(op.kind);
    switch (op.ifm.type.bytes) {
        case 1:
            return elementwise ? g.ifm8_elementwise : g.ifm8;
        case 2:
            return elementwise ? g.ifm16_elementwise : g.ifm16;
        default:
            return g.ifm32;
    }
}

}  // namespace

std::uint32_t ifm_block_depth(const Operation& op) {
    if (!sums_over_depth(op.kind)) return op.block_depth;
    const bool shallow = op.ifm.type.bytes > 1 || (op.kind == OpKind::Conv && op.kernel.part_kernel_first);
    return shallow ? 16 : 32;
}

BlockShape ifm_block(const Operation& op, const Hardware& hardware) {
    if (is_elementwise(op.kind)) return {op.block_height, op.block_width, op.block_depth};
    const std::uint32_t limit = op.kernel.decompose_4x4 ? 4 : 8;
    const std::uint32_t factor = op.upscale == Upscale::None ? 1 : 2, nearest = op.upscale == Upscale::Nearest ? 1 : 0;
    const auto extent = [&](std::uint32_t block, std::uint32_t stride, std::uint32_t kernel, std::uint32_t ublock) {
        const std::uint32_t grid = (block - 1) * stride + std::min(kernel, limit) + nearest;
        return round_up<std::uint32_t>(ceil_div(grid, factor), ublock);
    };
    BlockShape shape;
    shape.height = extent(op.block_height, op.kernel.stride_y, op.kernel.dilated_height(), hardware.ublock_height);
    shape.width = extent(op.block_width, op.kernel.stride_x, op.kernel.dilated_width(), hardware.ublock_width);
    shape.depth = ifm_block_depth(op);
    if (sums_over_depth(op.kind)) {
        const std::uint32_t step = op.ifm.type.bytes > 1 ? 4 : 8;
        shape.depth = std::min(shape.depth, round_up<std::uint32_t>(op.ifm.depth, step));
    }
    return shape;
}

ShramLayout shram_layout(const Operation& op, const Hardware& hardware) {
    ShramLayout layout;
    layout.end = hardware.shram_banks - std::uint32_t{hardware.reserved_end_banks};
    const BlockShape ifm = ifm_block(op, hardware);
    const std::uint64_t ifm_bytes =
        std::uint64_t{ifm.height} * ifm.width * round_up<std::uint32_t>(ifm.depth * op.ifm.type.bytes, 8);
    layout.ifm_banks = double_buffer_banks(ifm_bytes, ifm_granule(op, hardware.granules));
    const std::uint32_t after_ifm = layout.ib_start + layout.ifm_banks;
    if (is_elementwise(op.kind)) {
        layout.ifm2_ib_start = after_ifm;
        // No accumulators: the input buffers may take all that is left.
        const bool two_maps = has_ifm2(op.kind) && !op.ifm2_is_scalar;
        layout.ab_start = layout.end;
        layout.ib_end = std::max(after_ifm + (two_maps ? layout.ifm_banks : 0), layout.end);
        return layout;
    }
    const bool flat = op.ofm.height == 1 && op.kernel.height == 1;  // ublock 1x4 instead of 2x2
    const std::uint32_t height = flat ? 1 : op.block_height;
    const std::uint32_t depth = round_up<std::uint32_t>(ceil_div<std::uint32_t>(op.block_depth, op.cores), 8);
    const std::uint32_t acc_bits = op.acc_format == AccFormat::Int40 ? 40 : op.acc_format == AccFormat::Fp16 ? 16 : 32;
    const std::uint32_t granule = op.acc_format == AccFormat::Int40  ? hardware.granules.acc40
                                  : op.acc_format == AccFormat::Fp16 ? hardware.granules.acc16
                                                                     : hardware.granules.acc32;
    layout.acc_banks = double_buffer_banks(std::uint64_t{height} * op.block_width * depth * acc_bits / 8, granule);
    layout.ib_end = after_ifm;
    layout.ab_start = layout.end > layout.acc_banks ? layout.end - layout.acc_banks : 0;
    return layout;
}

}  // namespace talpa::npu
