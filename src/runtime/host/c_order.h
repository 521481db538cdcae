// Raw files hold tensors in C order of their logical shape, whatever order a program stores them in (pte-format,
// section 3.1: dim_order): the way from one to the other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/core/byte_reader.h"

namespace talpa::runtime::host {

/// Is a tensor with this order stored in C order already? Dimensions of size 1 may stand anywhere.
[[nodiscard]] bool is_c_order(std::span<const std::uint8_t> dim_order, std::span<const std::int32_t> sizes);

/// The elements in C order. `stored` has exactly the bytes of `sizes`; `dim_order` names each dimension once, outermost
/// first.
[[nodiscard]] std::vector<std::uint8_t> to_c_order(Bytes stored, std::size_t element_bytes,
                                                   std::span<const std::uint8_t> dim_order,
                                                   std::span<const std::int32_t> sizes);
/// The way back.
[[nodiscard]] std::vector<std::uint8_t> from_c_order(Bytes bytes, std::size_t element_bytes,
                                                     std::span<const std::uint8_t> dim_order,
                                                     std::span<const std::int32_t> sizes);

}  // namespace talpa::runtime::host
