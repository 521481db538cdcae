// Slices of a tensor along some of its dimensions: for each index of the other dimensions, the elements that a
// reduction, softmax or sort works on, in index order. Freestanding.
#pragma once

#include "runtime/operators/call.h"

namespace talpa::runtime::operators {

/// Walks the places of the dimensions outside of `set`, in index order, in up to five tensors at once. Each tensor
/// comes with byte strides by dimension of the shape; one that lacks the reduced dimensions has 0 there.
class SliceWalk {
  public:
    SliceWalk(std::span<const std::int32_t> shape, std::uint32_t set);
    SliceWalk(const SliceWalk&) = delete;
    SliceWalk& operator=(const SliceWalk&) = delete;
    void add(const std::uint8_t* data, const Strides& strides) { walk_.add(data, strides); }
    [[nodiscard]] bool next() { return walk_.next(); }
    [[nodiscard]] const std::uint8_t* from(std::size_t operand) const { return walk_.from(operand); }
    [[nodiscard]] std::uint8_t* to(std::size_t operand) const { return walk_.to(operand); }

  private:
    std::array<std::int32_t, kMaxRank> outer_{};
    Walk walk_;
};

/// One slice: the dimensions inside the set. Elements come in index order.
struct SliceShape {
    std::array<std::int32_t, kMaxRank> sizes{};
    std::uint8_t rank = 0;
    SliceShape(std::span<const std::int32_t> shape, std::uint32_t set);
    [[nodiscard]] std::span<const std::int32_t> span() const { return {sizes.data(), rank}; }
    [[nodiscard]] std::int64_t count() const;
};

/// The shape without the dimensions of the set, or with size 1 there.
[[nodiscard]] Shape reduced_shape(std::span<const std::int32_t> shape, std::uint32_t set, bool keep);
/// The output's strides by dimension of the input; 0 in reduced dimensions.
[[nodiscard]] Strides reduced_strides(const Tensor& out, std::size_t rank, std::uint32_t set, bool keep);

/// Calls visit(const Chunk&, n) for the elements of one slice in index order.
template <typename Visit>
void for_each_chunk(const SliceShape& slice, const std::uint8_t* data, ScalarType type, const Strides& strides,
                    Domain domain, Visit&& visit) {
    Walk walk(slice.span(), row_major(slice.rank), kChunk);
    walk.add(data, strides);
    Chunk chunk;
    while (walk.next()) {
        load(domain, type, walk.from(0), walk.step(0), walk.count(), chunk);
        visit(chunk, walk.count());
    }
}

}  // namespace talpa::runtime::operators
