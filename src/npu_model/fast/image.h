// The input of a convolution as its inner loop wants it: every row and column that a window can touch, padding
// included, with strides. Either the feature map's own memory, or a copy (padded, upscaled, out of tiles, widened to 16
// bits).
#pragma once

#include <cstdint>

#include "npu/operation.h"
#include "npu_model/kernels.h"

namespace talpa::npu_model::fast {

/// Rows, columns of the padded, upscaled grid, its origin at (-padding.top, -padding.left).
struct ImageShape {
    std::uint32_t height = 0, width = 0, depth = 0;
    npu::Layout layout = npu::Layout::Nhwc;
    std::uint8_t bytes = 1;                        ///< per element
    std::ptrdiff_t row = 0, pixel = 0, block = 0;  ///< strides in bytes; block: 16 channels

    /// Bytes of a copy, with room for vectors that read past the end.
    [[nodiscard]] std::size_t size_bytes() const;
};

/// What the windows of `op` cover, as a dense copy with elements of `bytes`.
[[nodiscard]] ImageShape copied_image(const npu::Operation& op, std::uint8_t bytes);
/// The same as it lies in memory; only where the map has no padding, no upscaling and one tile.
[[nodiscard]] ImageShape direct_image(const npu::Operation& op);
[[nodiscard]] bool can_be_direct(const npu::Operation& op);

/// Fills a dense copy at `out`, on all threads. Padding and inserted zeros get the IFM's zero point. Elements of one
/// byte are copied as they are; with shape.bytes == 2 they are widened by their sign.
void copy_image(const Context& context, const ImageShape& shape, std::uint8_t* out);

/// One row of 16 channels from c0: [x of the padded grid][16], elements of shape.bytes. `y` counts in the padded grid;
/// padding and inserted zeros become `filler`.
void copy_line(const Context& context, const ImageShape& shape, std::uint32_t y, std::uint32_t c0, std::int32_t filler,
               std::uint8_t* out);

}  // namespace talpa::npu_model::fast
