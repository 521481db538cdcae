#include "runtime/operators/slices.h"

namespace talpa::runtime::operators {
namespace {

// The shape with size 1 where the set has (`ones_inside`) or lacks a dimension.
std::array<std::int32_t, kMaxRank> with_ones(std::span<const std::int32_t> shape, std::uint32_t set, bool ones_inside) {
    std::array<std::int32_t, kMaxRank> sizes{};
    for (std::size_t d = 0; d < shape.size(); ++d) sizes[d] = ((set >> d & 1) != 0) == ones_inside ? 1 : shape[d];
    return sizes;
}

}  // namespace

SliceWalk::SliceWalk(std::span<const std::int32_t> shape, std::uint32_t set)
    : outer_(with_ones(shape, set, true)), walk_({outer_.data(), shape.size()}, row_major(shape.size()), 1) {}

SliceShape::SliceShape(std::span<const std::int32_t> shape, std::uint32_t set)
    : sizes(with_ones(shape, set, false)), rank(static_cast<std::uint8_t>(shape.size())) {}

std::int64_t SliceShape::count() const {
    std::uint64_t n = 1;
    for (std::size_t d = 0; d < rank; ++d) n *= static_cast<std::uint64_t>(sizes[d]);
    return static_cast<std::int64_t>(n);
}

Shape reduced_shape(std::span<const std::int32_t> shape, std::uint32_t set, bool keep) {
    Shape result;
    for (std::size_t d = 0; d < shape.size(); ++d) {
        const bool reduced = (set >> d & 1) != 0;
        if (!reduced || keep) result.sizes[result.rank++] = reduced ? 1 : shape[d];
    }
    return result;
}

Strides reduced_strides(const Tensor& out, std::size_t rank, std::uint32_t set, bool keep) {
    const Strides own = byte_strides(out);
    Strides strides{};
    std::size_t at = 0;
    for (std::size_t d = 0; d < rank; ++d) {
        const bool reduced = (set >> d & 1) != 0;
        if (!reduced) strides[d] = own[at];
        at += !reduced || keep ? 1 : 0;
    }
    return strides;
}

}  // namespace talpa::runtime::operators
