// Blocks: what of the input one OFM block needs, and how the shared RAM is divided for it. Facts of the hardware that
// the compiler lays out by, the strict checks verify, and the hazard and cycle models count with. Freestanding.
// (ethos-u65, sections 3.5, 7.3 and 9.4)
#pragma once

#include <cstdint>

#include "npu/hardware.h"
#include "npu/operation.h"

namespace talpa::npu {

inline constexpr std::uint32_t kMaxBlockHeight = 32, kMaxBlockWidth = 64, kMaxBlockDepth = 128;

/// Does an input channel feed every output channel? Then passes over the input go by their own depth; of all other
/// operations input and output channels correspond.
[[nodiscard]] constexpr bool sums_over_depth(OpKind kind) {
    return kind == OpKind::Conv || kind == OpKind::ReduceSum;
}

struct BlockShape {
    std::uint32_t height = 1, width = 1, depth = 1;
    friend constexpr bool operator==(BlockShape, BlockShape) = default;
};

/// Input box for one OFM block: rows and columns of a full block's windows (sub-kernels at most 8x8, or 4x4), the depth
/// of one pass over the input. Rounded up as the input buffers are.
[[nodiscard]] BlockShape ifm_block(const Operation& op, const Hardware& hardware);

/// Channels of the input that one pass takes: 32, or 16 (part-kernel or 16-bit); the block's own depth where input and
/// output channels correspond; for reduce sum as for a convolution.
[[nodiscard]] std::uint32_t ifm_block_depth(const Operation& op);

/// Banks of 1 KiB. Bank 0 and 1 are output buffers, the reserved end banks hold the LUT.
struct ShramLayout {
    std::uint32_t ifm_banks = 0;  ///< double buffer of the IFM; IFM2 of an elementwise operation takes as many
    std::uint32_t acc_banks = 0;  ///< double buffer of the accumulators; 0 for elementwise
    std::uint32_t ib_start = 2;
    std::uint32_t ifm2_ib_start = 0;  ///< elementwise with two maps only
    std::uint32_t ib_end = 0;
    std::uint32_t ab_start = 0;
    std::uint32_t end = 0;  ///< first bank after the accumulators

    [[nodiscard]] bool fits() const { return ib_end <= ab_start && ab_start >= ib_start; }
};
/// The layout that compilers program for the operation's block; `fits` tells whether the block is possible at all.
[[nodiscard]] ShramLayout shram_layout(const Operation& op, const Hardware& hardware);

}  // namespace talpa::npu
