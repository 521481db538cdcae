// Short integer names for the simulator, whose code is about 32-bit words all day.
#pragma once

#include <cstdint>

namespace talpa::board::cpu {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i8 = std::int8_t;
using i16 = std::int16_t;
using i32 = std::int32_t;
using i64 = std::int64_t;

/// The low bits of any integer, unsigned.
template <typename T>
[[nodiscard]] constexpr u32 w(T value) {
    return static_cast<u32>(value);
}
template <typename T>
[[nodiscard]] constexpr i32 s(T value) {
    return static_cast<i32>(value);
}
/// `count` bits of `value` from bit `low`.
[[nodiscard]] constexpr u32 bits(u32 value, unsigned low, unsigned count) {
    return (value >> low) & ((1U << count) - 1);
}
[[nodiscard]] constexpr bool bit(u32 value, unsigned n) {
    return ((value >> n) & 1U) != 0;
}
/// The low `width` bits of `value` as a signed number.
[[nodiscard]] constexpr i32 sign_extend(u32 value, unsigned width) {
    return static_cast<i32>(value << (32 - width)) >> (32 - width);
}

}  // namespace talpa::board::cpu
