// Questions about where feature maps lie, asked once per run: their memory may move between runs, their shape may not.
#pragma once

#include <cstdint>

#include "npu/extent.h"
#include "npu_model/kernels.h"

namespace talpa::npu_model::fast {

struct MemorySpan {
    const std::uint8_t* begin = nullptr;
    const std::uint8_t* end = nullptr;

    [[nodiscard]] bool overlaps(const MemorySpan& o) const { return begin < o.end && o.begin < end; }
};

[[nodiscard]] inline MemorySpan span_of(const Context& context, const npu::FeatureMap& fm) {
    const npu::Extent hull = npu::hull(fm);
    const std::uint8_t* data = context.memory(fm);
    return {data + hull.begin, data + hull.end};
}

/// All rows and columns in tile 0: element addresses are linear in y and x.
[[nodiscard]] constexpr bool is_single_tile(const npu::FeatureMap& fm) {
    return fm.height <= fm.height0 && fm.width <= fm.width0;
}
/// Each row is: only y needs a look at the tiles.
[[nodiscard]] constexpr bool has_linear_rows(const npu::FeatureMap& fm) {
    return fm.width <= fm.width0;
}

[[nodiscard]] constexpr std::ptrdiff_t pixel_stride(const npu::FeatureMap& fm) {
    return static_cast<std::ptrdiff_t>(fm.layout == npu::Layout::Nhwc ? fm.stride_x : 16 * fm.type.bytes);
}
/// From 16 channels to the next 16.
[[nodiscard]] constexpr std::ptrdiff_t block_stride(const npu::FeatureMap& fm) {
    return static_cast<std::ptrdiff_t>(fm.layout == npu::Layout::Nhwc ? 16 * fm.type.bytes : fm.stride_c);
}

}  // namespace talpa::npu_model::fast
