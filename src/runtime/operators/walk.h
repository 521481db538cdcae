// Walks the elements of up to five tensors of one shape together, in runs along the innermost dimension. Dimensions
// that lie one after the other in every tensor are merged first, so that dense tensors become one long run.
// Freestanding.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/operators/elements.h"
#include "runtime/tensor.h"

namespace talpa::runtime::operators {

using Strides = std::array<std::int64_t, kMaxRank>;

class Walk {
  public:
    static constexpr std::size_t kMaxOperands = 5;

    /// `order` names the dimensions from the outermost to the innermost. Runs have at most `longest_run` elements.
    Walk(std::span<const std::int32_t> shape, std::span<const std::uint8_t> order, std::size_t longest_run);

    /// Strides are in bytes, by dimension of the shape; they may be 0 (broadcast) or negative (reversed).
    void add(const std::uint8_t* data, const Strides& strides);

    /// Goes to the next run; false after the last. Call after all operands were added.
    [[nodiscard]] bool next();
    [[nodiscard]] std::size_t count() const { return run_; }
    [[nodiscard]] const std::uint8_t* from(std::size_t operand) const { return to(operand); }
    [[nodiscard]] std::uint8_t* to(std::size_t operand) const { return reinterpret_cast<std::uint8_t*>(at_[operand]); }
    [[nodiscard]] std::int64_t step(std::size_t operand) const { return rank_ == 0 ? 0 : step_[rank_ - 1][operand]; }

  private:
    void merge();
    void advance();

    std::span<const std::int32_t> shape_;
    std::span<const std::uint8_t> order_;
    std::size_t longest_run_;
    std::array<Strides, kMaxOperands> strides_{};
    std::array<std::uintptr_t, kMaxOperands>
        base_{};  // numbers, since an empty tensor may be at null and still has strides
    std::size_t operands_ = 0;

    bool started_ = false;
    bool done_ = false;
    std::size_t rank_ = 0;  // of the merged shape
    std::array<std::int64_t, kMaxRank> size_{};
    std::array<std::int64_t, kMaxRank> index_{};
    std::array<std::array<std::int64_t, kMaxOperands>, kMaxRank> step_{};
    std::int64_t position_ = 0;  // in the innermost dimension
    std::size_t run_ = 0;
    std::array<std::uintptr_t, kMaxOperands> at_{};
};

/// The place `bytes` further on. Computed as a number: an empty tensor may be at null, and pointers may not be moved
/// from there.
[[nodiscard]] inline std::uint8_t* moved(const std::uint8_t* from, std::int64_t bytes) {
    return reinterpret_cast<std::uint8_t*>(reinterpret_cast<std::uintptr_t>(from) + static_cast<std::uintptr_t>(bytes));
}

/// Element strides of a tensor in bytes.
[[nodiscard]] Strides byte_strides(const Tensor& tensor);
/// The same for a tensor that is read as `shape` by broadcasting: aligned at the last dimension, 0 where its size is 1.
/// The caller has checked that it broadcasts.
[[nodiscard]] Strides broadcast_strides(const Tensor& tensor, std::span<const std::int32_t> shape);

/// Copies elements of `element` bytes between two layouts of one shape. `order` as of Walk; the ranges may overlap, the
/// result is then unspecified.
void copy_elements(std::span<const std::int32_t> shape, std::span<const std::uint8_t> order, std::size_t element,
                   std::uint8_t* to, const Strides& to_strides, const std::uint8_t* from, const Strides& from_strides);
/// Where elements lie and what they are.
struct Place {
    std::uint8_t* data = nullptr;
    ScalarType type = ScalarType::Float32;
    Strides strides{};  ///< in bytes
};
[[nodiscard]] inline Place place_of(const Tensor& t) {
    return {t.data, t.type, byte_strides(t)};
}
/// The same with conversion when the types differ; both must be computable then.
void convert_elements(std::span<const std::int32_t> shape, std::span<const std::uint8_t> order, const Place& to,
                      const Place& from);

}  // namespace talpa::runtime::operators
