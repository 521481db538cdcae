// The IFM block of an OFM block: what the input buffers in SHRAM are sized for (ethos-u65, section 9.4).
#include <algorithm>

#include "npu_model/cycles/operation_cost.h"

namespace talpa::npu_model {
namespace {

constexpr std::uint32_t kSubKernel = 8;

constexpr std::uint32_t round_up(std::uint32_t v, std::uint32_t multiple) {
    return (v + multiple - 1) / multiple * multiple;
}

std::uint32_t extent(std::uint32_t block, std::uint32_t stride, std::uint32_t dilated, npu::Upscale upscale) {
    const std::uint32_t factor = upscale == npu::Upscale::None ? 1 : 2;
    const std::uint32_t nearest = upscale == npu::Upscale::Nearest ? 1 : 0;
    const std::uint32_t needed = (block - 1) * stride + std::min(dilated, kSubKernel) + nearest;
    return round_up((needed + factor - 1) / factor, 2);
}

}  // namespace

BlockShape ifm_block(const npu::Operation& op) {
    if (npu::is_elementwise(op.kind)) return {op.block_height, op.block_width, op.block_depth};
    BlockShape block;
    block.height = extent(op.block_height, op.kernel.stride_y, op.kernel.dilated_height(), op.upscale);
    block.width = extent(op.block_width, op.kernel.stride_x, op.kernel.dilated_width(), op.upscale);
    if (!reduces_depth(op.kind))
        block.depth = op.block_depth;
    else if (op.ifm.type.bytes == 1)
        block.depth = round_up(std::min(op.ifm.depth, op.kernel.part_kernel_first ? 16u : 32u), 8);
    else if (op.ifm.type.bytes == 2)
        block.depth = round_up(std::min(op.ifm.depth, 16u), 4);
    else
        block.depth = round_up(std::min(op.ifm.depth, 8u), 4);
    return block;
}

}  // namespace talpa::npu_model
