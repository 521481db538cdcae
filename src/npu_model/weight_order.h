// The walk over a filter bank in stream order (ethos-u65, section 7.3), once, for whoever needs it: placing decoded
// weights, and the encoders of tests.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/core/checked_math.h"
#include "npu_model/weights.h"

namespace talpa::npu_model {

inline constexpr std::uint32_t kIfmUblockDepth = 8;

/// The numbers of section 7.3 for one core.
struct CoreWeightOrder {
    std::uint32_t ofm_depth;    ///< this core's channels: core, core + cores, …
    std::uint32_t block_depth;  ///< this core's share of the OFM block
    std::uint32_t ifm_block;    ///< IB
    std::uint32_t sub_height, sub_width;
    std::uint32_t element_step;  ///< sub-kernel elements are rounded up to this
    bool part_kernel;

    CoreWeightOrder(const WeightOrder& w, unsigned core)
        : ofm_depth((w.ofm_depth + w.cores - 1 - core) / w.cores),
          block_depth(std::max(1u, (w.block_depth + w.cores - 1 - core) / w.cores)),
          ifm_block((w.part_kernel_first && !w.depthwise) || w.ifm_16bit ? 16 : 32),
          sub_height((w.decompose_4x4 ? 4u : 8u) / w.dilation_y),
          sub_width((w.decompose_4x4 ? 4u : 8u) / w.dilation_x),
          element_step(w.depthwise            ? 4
                       : !w.part_kernel_first ? 1
                       : w.ifm_16bit          ? 2
                                              : 4),
          part_kernel(w.part_kernel_first && !w.depthwise) {}
};

/// Calls weights(o, ky, kx, i, count) for `count` weights of consecutive inputs from i on, and padding(count) for as
/// many padding symbols, in stream order. `o` counts the channels of the whole operation.
template <typename Weights, typename Padding>
void walk_weights(const WeightOrder& w, unsigned core, Weights weights, Padding padding) {
    const CoreWeightOrder n(w, core);
    const std::uint32_t depth = w.bank_ifm_depth();
    const std::uint32_t lanes = w.depthwise ? 1 : kIfmUblockDepth;
    for (std::uint32_t ob = 0; ob < n.ofm_depth; ob += n.block_depth) {
        const std::uint32_t cb = std::min(n.block_depth, n.ofm_depth - ob);
        for (std::uint32_t ib = 0; ib < depth; ib += n.ifm_block) {
            const std::uint32_t ci = w.depthwise     ? kIfmUblockDepth
                                     : n.part_kernel ? std::min(n.ifm_block, depth - ib)
                                                     : n.ifm_block;
            const std::uint32_t outer_end = n.part_kernel ? ci : 1, inner_end = n.part_kernel ? 1 : ci;
            for (std::uint32_t sy = 0; sy < w.kernel_height; sy += n.sub_height) {
                const std::uint32_t sh = std::min(n.sub_height, w.kernel_height - sy);
                for (std::uint32_t sx = 0; sx < w.kernel_width; sx += n.sub_width) {
                    const std::uint32_t sw = std::min(n.sub_width, w.kernel_width - sx);
                    const std::uint32_t elements = round_up(sh * sw, n.element_step);
                    for (std::uint32_t io = 0; io < outer_end; io += kIfmUblockDepth)
                        for (std::uint32_t ou = 0; ou < cb; ou += w.ublock_depth)
                            for (std::uint32_t e = 0; e < elements; ++e)
                                for (std::uint32_t ii = 0; ii < inner_end; ii += kIfmUblockDepth)
                                    for (std::uint32_t o = 0; o < w.ublock_depth; ++o) {
                                        const std::uint32_t channel = ou + o, input = ib + io + ii;
                                        const bool inside = channel < cb && input < depth && e < sh * sw;
                                        const std::uint32_t count = inside ? std::min(lanes, depth - input) : 0;
                                        if (count != 0)
                                            weights((ob + channel) * w.cores + core, sy + e / sw, sx + e % sw, input,
                                                    count);
                                        if (count != lanes) padding(lanes - count);
                                    }
                }
            }
        }
    }
}

}  // namespace talpa::npu_model
