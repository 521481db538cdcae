// Elements of the seven types that operators compute on, a chunk at a time: loaded with one conversion into float32 or
// int64 (the two domains of arithmetic), stored with one conversion back. So an operator is written once a domain and
// not once a type. Freestanding. (pte-format, section 3.1)
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/tensor.h"

namespace talpa::runtime::operators {

/// What the arithmetic is done in: int64 for integers and bool, float32 for float32.
enum class Domain : std::uint8_t { Integer, Float };

inline constexpr std::size_t kChunk = 64;

/// Elements in the middle of a computation; which member is valid, the domain says.
union Chunk {
    std::int64_t i[kChunk];
    float f[kChunk];
};

/// uint8, int8, int16, int32, int64, float32, bool.
[[nodiscard]] bool is_computable(ScalarType type);
[[nodiscard]] constexpr Domain domain_of(ScalarType type) {
    return type == ScalarType::Float32 ? Domain::Float : Domain::Integer;
}
/// The type of a result of two tensors, as PyTorch promotes them: bool < integers < float32; uint8 with a signed type
/// gives the next larger signed type. Both must be computable.
[[nodiscard]] ScalarType promote(ScalarType a, ScalarType b);
/// May a result of type `from` be stored in a tensor of type `to`? Float to integer and number to bool may not.
[[nodiscard]] bool can_store(ScalarType from, ScalarType to);

/// float32 to int64 like a C cast where that is defined; NaN and what lies outside give INT64_MIN, as x86-64 does.
[[nodiscard]] std::int64_t to_integer(float value);
/// The value that is left when `value` is stored in an integer type: modulo 2^bits; bool: is it not 0?
[[nodiscard]] std::int64_t wrap(ScalarType type, std::int64_t value);

/// n <= kChunk elements from `from`, `step` bytes apart, into `to`. The pointer need not be aligned.
void load(Domain domain, ScalarType type, const std::uint8_t* from, std::int64_t step, std::size_t n, Chunk& to);
void store(Domain domain, const Chunk& from, std::size_t n, ScalarType type, std::uint8_t* to, std::int64_t step);

/// One element in a domain: T is float or std::int64_t.
template <typename T>
[[nodiscard]] T load_one(ScalarType type, const std::uint8_t* from);
template <typename T>
void store_one(T value, ScalarType type, std::uint8_t* to);

template <typename T>
inline constexpr Domain kDomainOf = Domain::Integer;
template <>
inline constexpr Domain kDomainOf<float> = Domain::Float;

/// The chunk's member of a domain.
template <typename T>
[[nodiscard]] T* elements(Chunk& chunk);
template <>
inline float* elements<float>(Chunk& chunk) {
    return chunk.f;
}
template <>
inline std::int64_t* elements<std::int64_t>(Chunk& chunk) {
    return chunk.i;
}

}  // namespace talpa::runtime::operators
