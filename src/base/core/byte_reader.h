// Little-endian reads from bytes of a stranger. Every read is checked against the span; reads go byte by byte or by an
// aligned word, because on the M33 the program may lie in Device memory, where an unaligned word access faults.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "base/core/checked_math.h"
#include "base/core/error.h"

namespace talpa {

using Bytes = std::span<const std::uint8_t>;

/// Little-endian value at `p`, which the caller has checked. T: an unsigned or signed integer, float or double.
template <typename T>
[[nodiscard]] inline T load_le(const std::uint8_t* p) {
    if constexpr (std::floating_point<T>) {
        using Word = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
        return std::bit_cast<T>(load_le<Word>(p));
    } else {
        using Word = std::make_unsigned_t<T>;
        Word value = 0;
        for (std::size_t i = 0; i < sizeof(T); ++i)
            value = static_cast<Word>(value | (static_cast<Word>(p[i]) << (8 * i)));
        return static_cast<T>(value);
    }
}

/// The other direction, of the same types.
template <typename T>
inline void store_le(std::uint8_t* p, T v) {
    if constexpr (std::floating_point<T>) {
        using Word = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
        store_le(p, std::bit_cast<Word>(v));
    } else {
        using Word = std::make_unsigned_t<T>;
        const auto word = static_cast<Word>(v);
        for (std::size_t i = 0; i < sizeof(T); ++i) p[i] = static_cast<std::uint8_t>(word >> (8 * i));
    }
}

class ByteReader {
  public:
    explicit ByteReader(Bytes bytes) : bytes_(bytes) {}

    [[nodiscard]] std::size_t size() const { return bytes_.size(); }

    /// The value at `offset`, or OutOfBounds naming offset and size.
    template <typename T>
    [[nodiscard]] Result<T> at(std::uint64_t offset) const {
        if (!range_inside(offset, sizeof(T), bytes_.size()))
            return fail(ErrorCode::OutOfBounds, "read of {} bytes at offset {} of {}", static_cast<unsigned>(sizeof(T)),
                        offset, bytes_.size());
        return load_le<T>(bytes_.data() + offset);
    }

    [[nodiscard]] Result<Bytes> slice(std::uint64_t offset, std::uint64_t size) const {
        if (!range_inside(offset, size, bytes_.size()))
            return fail(ErrorCode::OutOfBounds, "read of {} bytes at offset {} of {}", size, offset, bytes_.size());
        return bytes_.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
    }

  private:
    Bytes bytes_;
};

}  // namespace talpa
