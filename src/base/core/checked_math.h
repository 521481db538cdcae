// Arithmetic on numbers that come from outside: overflow is an answer, not a surprise.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>

namespace talpa {

template <std::integral T>
[[nodiscard]] constexpr std::optional<T> checked_add(T a, T b) {
    T r{};
    if (__builtin_add_overflow(a, b, &r)) return std::nullopt;
    return r;
}

template <std::integral T>
[[nodiscard]] constexpr std::optional<T> checked_mul(T a, T b) {
    T r{};
    if (__builtin_mul_overflow(a, b, &r)) return std::nullopt;
    return r;
}

/// Smallest multiple of `step` that is >= v. `step` > 0; the caller knows that v + step does not overflow.
template <std::integral T>
[[nodiscard]] constexpr T round_up(T v, T step) {
    return (v + step - 1) / step * step;
}

template <std::integral T>
[[nodiscard]] constexpr T ceil_div(T v, T step) {
    return (v + step - 1) / step;
}

/// True when [offset, offset + size) lies inside [0, limit), without overflow.
[[nodiscard]] constexpr bool range_inside(std::uint64_t offset, std::uint64_t size, std::uint64_t limit) {
    return offset <= limit && size <= limit - offset;
}

/// Does [a, a + a_size) share a byte with [b, b + b_size)? Empty ranges share nothing.
[[nodiscard]] constexpr bool ranges_overlap(std::uint64_t a, std::uint64_t a_size, std::uint64_t b,
                                            std::uint64_t b_size) {
    return a_size != 0 && b_size != 0 && a < b + b_size && b < a + a_size;
}

}  // namespace talpa
