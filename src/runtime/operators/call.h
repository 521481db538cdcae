// What the operators share when they read their arguments: checked tensors, dimensions, lists, shapes of results.
// Errors name the operator and the argument. Freestanding. (pte-format, section 5.3)
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "runtime/operator.h"
#include "runtime/operators/elements.h"
#include "runtime/operators/walk.h"

namespace talpa::runtime::operators {

/// The shape of a result, while it is being worked out.
struct Shape {
    std::array<std::int32_t, kMaxRank> sizes{};
    std::uint8_t rank = 0;

    Shape() = default;
    Shape(std::span<const std::int32_t> s) : rank(static_cast<std::uint8_t>(s.size())) {
        for (std::size_t d = 0; d < s.size(); ++d) sizes[d] = s[d];
    }
    [[nodiscard]] std::span<const std::int32_t> span() const { return {sizes.data(), rank}; }
    [[nodiscard]] std::size_t numel() const {
        std::size_t n = 1;
        for (std::size_t d = 0; d < rank; ++d) n *= static_cast<std::size_t>(sizes[d]);
        return n;
    }
};

/// 0, 1, 2 …: the order of a contiguous tensor.
[[nodiscard]] std::span<const std::uint8_t> row_major(std::size_t rank);
[[nodiscard]] inline std::span<const std::uint8_t> order_of(const Tensor& t) {
    return {t.dim_order.data(), t.rank};
}
/// Do the bytes lie as in a contiguous tensor? Dimensions of size 1 do not matter.
[[nodiscard]] bool lies_contiguous(const Tensor& t);

/// A tensor of any type.
[[nodiscard]] Result<Tensor*> any_tensor(const Arguments& args, std::size_t arg);
/// A tensor of a type that operators compute on, or of exactly the type that is named.
[[nodiscard]] Result<Tensor*> computable(const Arguments& args, std::size_t arg);
[[nodiscard]] Result<Tensor*> tensor_of(const Arguments& args, std::size_t arg, ScalarType type);
[[nodiscard]] inline Result<Tensor*> float_tensor(const Arguments& args, std::size_t arg) {
    return tensor_of(args, arg, ScalarType::Float32);
}
/// Indices: int64, or int32 where PyTorch takes both.
[[nodiscard]] Result<Tensor*> index_tensor(const Arguments& args, std::size_t arg);

/// The output `arg`, brought to `shape`. It may be an input of the call as well only if its shape does not change by
/// that.
[[nodiscard]] Result<Tensor*> out_of_shape(const Arguments& args, std::size_t arg, const Shape& shape);
/// The same for a tensor of an output list.
[[nodiscard]] Result<Tensor*> list_out_of_shape(const Arguments& args, std::size_t arg, std::uint32_t item,
                                                const Shape& shape);
/// Errors unless the tensor has that type.
[[nodiscard]] Result<void> want_type(const Arguments& args, std::size_t arg, const Tensor& t, ScalarType type);
/// Errors unless a result of type `from` may be stored in the out tensor.
[[nodiscard]] Result<void> want_storable(const Arguments& args, std::size_t arg, ScalarType from, const Tensor& out);
/// Errors unless the out tensor is of a type that operators compute on.
[[nodiscard]] Result<void> want_computable(const Arguments& args, std::size_t arg, const Tensor& t);

/// A dimension argument brought into 0 … rank-1; a tensor of rank 0 counts as one of rank 1.
[[nodiscard]] Result<std::size_t> dimension(const Arguments& args, std::size_t arg, std::size_t rank);
[[nodiscard]] Result<std::size_t> checked_dimension(const Arguments& args, std::size_t arg, std::int64_t dim,
                                                    std::size_t rank);
/// A list of dimensions as a bit set; all of them for Null and, where PyTorch reads it so, for an empty list.
enum class EmptyList : std::uint8_t { MeansAll, MeansNone };
[[nodiscard]] Result<std::uint32_t> dimension_set(const Arguments& args, std::size_t arg, std::size_t rank,
                                                  EmptyList empty);

struct IntList {
    std::array<std::int64_t, kMaxRank * 2> items{};
    std::size_t count = 0;
    [[nodiscard]] std::int64_t operator[](std::size_t k) const { return items[k]; }
};
/// At most 2 × kMaxRank items.
[[nodiscard]] Result<IntList> int_list(const Arguments& args, std::size_t arg);
/// Sizes of a shape: at most kMaxRank, each in 0 … 2^31-1; `allow_inferred` lets -1 stand.
[[nodiscard]] Result<IntList> size_list(const Arguments& args, std::size_t arg, bool allow_inferred);
/// A shape from checked sizes; errors when its elements cannot be counted in 63 bits.
[[nodiscard]] Result<Shape> shape_of(const Arguments& args, std::size_t arg, const IntList& sizes);

/// A Scalar argument, kept as what it is so that no 64-bit integer is rounded.
struct Scalar {
    Value::Kind kind = Value::Kind::Int;
    std::int64_t i = 0;
    double d = 0;

    [[nodiscard]] float as_float() const {
        return kind == Value::Kind::Double ? static_cast<float>(d) : static_cast<float>(i);
    }
    [[nodiscard]] bool is_double() const { return kind == Value::Kind::Double; }
};
[[nodiscard]] Result<Scalar> scalar(const Arguments& args, std::size_t arg);
/// The scalar as an integer; a Double only when it is a whole number that fits.
[[nodiscard]] Result<std::int64_t> integer_scalar(const Arguments& args, std::size_t arg, const Scalar& s);
/// The type of a result of a tensor and a Scalar: the scalar only lifts its kind (bool < integer < float).
[[nodiscard]] ScalarType promote_with(ScalarType tensor, const Scalar& s);
/// The scalar in a domain (a Double that enters Integer was refused before).
template <typename T>
[[nodiscard]] T value_of(const Scalar& s) {
    if constexpr (sizeof(T) == sizeof(float))
        return s.as_float();
    else
        return s.kind == Value::Kind::Double ? to_integer(static_cast<float>(s.d)) : s.i;
}
/// The text of a String argument; `otherwise` for Null.
[[nodiscard]] Result<std::string_view> text(const Arguments& args, std::size_t arg, std::string_view otherwise);

/// The broadcast shape of `shape` and the tensor's; errors when sizes differ and neither is 1.
[[nodiscard]] Result<Shape> broadcast(const Arguments& args, std::size_t arg, const Shape& shape, const Tensor& t);

}  // namespace talpa::runtime::operators
