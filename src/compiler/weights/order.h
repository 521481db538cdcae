// The order in which the weights of an operation lie in its stream: blocks of output channels, of input channels,
// sub-kernels, ublocks. The model of the NPU has a decoder of its own that undoes this. (ethos-u65, sections 7.3 and
// 7.5)
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace talpa::compiler {

/// Weights as lowering hands them over: dense O x KH x KW x I (I = 1 for depthwise), zero points removed.
struct FilterShape {
    std::uint32_t ofm_depth = 1, height = 1, width = 1, ifm_depth = 1;
    [[nodiscard]] std::size_t size() const { return std::size_t{ofm_depth} * height * width * ifm_depth; }
    friend bool operator==(const FilterShape&, const FilterShape&) = default;
};

struct StreamOrder {
    std::uint32_t block_depth = 8;  ///< OFM block depth of the operation, all cores
    std::uint32_t dilation_y = 1, dilation_x = 1;
    bool depthwise = false;
    bool part_kernel_first = false;  ///< ignored for depthwise
    bool ifm_16bit = false;
    std::uint32_t ofm_ublock_depth = 8;
    std::uint32_t cores = 1;
    friend bool operator==(const StreamOrder&, const StreamOrder&) = default;
};

/// The symbols of core `core` for output channels [first, first + count) of the filter: padding zeros included.
[[nodiscard]] std::vector<std::int16_t> stream_symbols(std::span<const std::int16_t> dense, const FilterShape& shape,
                                                       const StreamOrder& order, std::uint32_t first,
                                                       std::uint32_t count, unsigned core = 0);

}  // namespace talpa::compiler
