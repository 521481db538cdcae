// Tensors and values as the executor and the CPU operators see them. Nothing here owns memory. Freestanding.
// (pte-format, sections 3.1 and 4)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace talpa::runtime {

/// Scalar types with their ids in the file. X(id, name, bytes)
#define TALPA_SCALAR_TYPES(X) \
    X(0, UInt8, 1)            \
    X(1, Int8, 1)             \
    X(2, Int16, 2)            \
    X(3, Int32, 4)            \
    X(4, Int64, 8)            \
    X(5, Float16, 2)          \
    X(6, Float32, 4)          \
    X(7, Float64, 8)          \
    X(11, Bool, 1)            \
    X(12, QInt8, 1)           \
    X(13, QUInt8, 1)          \
    X(14, QInt32, 4)          \
    X(15, BFloat16, 2)        \
    X(16, QUInt4x2, 1)        \
    X(17, QUInt2x4, 1)        \
    X(22, Bits16, 2)          \
    X(23, Float8E5M2, 1)      \
    X(24, Float8E4M3FN, 1)    \
    X(25, Float8E5M2FNUZ, 1)  \
    X(26, Float8E4M3FNUZ, 1)  \
    X(27, UInt16, 2)          \
    X(28, UInt32, 4)          \
    X(29, UInt64, 8)

enum class ScalarType : std::int8_t {
#define X(id, name, bytes) name = id,
    TALPA_SCALAR_TYPES(X)
#undef X
};

/// Bytes of an element; 0 if the id is no scalar type.
[[nodiscard]] constexpr std::size_t scalar_size(ScalarType type) {
    switch (type) {
#define X(id, name, bytes) \
    case ScalarType::name: \
        return bytes;
        TALPA_SCALAR_TYPES(X)
#undef X
    }
    return 0;
}

/// "int8", "float32" …: lower case, as NumPy and PyTorch print them.
[[nodiscard]] std::string_view scalar_name(ScalarType type);

inline constexpr std::size_t kMaxRank = 16;

/// A dense tensor: sizes in logical (NCHW) order, bytes in the order that dim_order gives, outermost first.
struct Tensor {
    ScalarType type = ScalarType::Float32;
    std::uint8_t rank = 0;
    bool is_constant = false;  ///< must not be written
    bool is_dynamic = false;   ///< DYNAMIC_BOUND: sizes may shrink below the upper bounds
    std::array<std::int32_t, kMaxRank> sizes{};
    std::array<std::uint8_t, kMaxRank> dim_order{};
    // Padded, so that the method pool needs the same bytes on a host and on the M33.
    alignas(8) std::uint8_t* data = nullptr;    ///< null: not bound yet; aligned to the element's size
    alignas(8) std::size_t capacity_bytes = 0;  ///< bytes at `data`

    [[nodiscard]] std::span<const std::int32_t> shape() const { return {sizes.data(), rank}; }
    [[nodiscard]] std::size_t numel() const {
        std::size_t n = 1;
        for (std::size_t i = 0; i < rank; ++i) n *= static_cast<std::size_t>(sizes[i]);
        return n;
    }
    [[nodiscard]] std::size_t size_bytes() const { return numel() * scalar_size(type); }
    /// Element strides by logical dimension, from dim_order; a size of 0 counts as 1.
    [[nodiscard]] std::array<std::int64_t, kMaxRank> strides() const {
        std::array<std::int64_t, kMaxRank> s{};
        std::int64_t step = 1;
        for (std::size_t i = rank; i-- > 0;) {
            s[dim_order[i]] = step;
            step *= sizes[dim_order[i]] > 0 ? sizes[dim_order[i]] : 1;
        }
        return s;
    }
    template <typename T>
    [[nodiscard]] T* as() const {
        return reinterpret_cast<T*>(data);
    }
};
static_assert(sizeof(Tensor) == 104);

/// One slot of a method's value table. Lists hold indices of other values, except double and bool lists.
struct Value {
    enum class Kind : std::uint8_t {
        Null,
        Int,
        Double,
        Bool,
        String,
        Tensor,
        IntList,
        DoubleList,
        BoolList,
        TensorList,
        OptionalTensorList
    } kind = Kind::Null;
    union {
        std::int64_t i = 0;         // Int; Bool as 0 or 1
        double d;                   // Double
        Tensor* tensor;             // Tensor
        const std::uint8_t* items;  // lists and strings: little-endian elements in the program
    };
    std::uint32_t count = 0;  // of items
};
static_assert(sizeof(Value) == 24);
[[nodiscard]] std::string_view value_kind_name(Value::Kind kind);

}  // namespace talpa::runtime
