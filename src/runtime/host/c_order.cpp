#include "runtime/host/c_order.h"

#include <cstring>

namespace talpa::runtime::host {
namespace {

/// Calls fn(place of the element in C order, place as stored), both in elements, for every element.
template <typename Fn>
void for_each_element(std::span<const std::uint8_t> dim_order, std::span<const std::int32_t> sizes, Fn&& fn) {
    const std::size_t rank = sizes.size();
    std::vector<std::size_t> stride(rank), at(rank);
    std::size_t count = 1;
    for (std::size_t d = rank; d-- > 0;) {
        stride[dim_order[d]] = count;
        count *= static_cast<std::size_t>(sizes[dim_order[d]]);
    }
    std::size_t stored = 0;
    for (std::size_t i = 0; i < count; ++i) {
        fn(i, stored);
        for (std::size_t d = rank; d-- > 0;) {  // the next index, last dimension first
            stored += stride[d];
            if (++at[d] < static_cast<std::size_t>(sizes[d])) break;
            stored -= stride[d] * at[d];
            at[d] = 0;
        }
    }
}

}  // namespace

bool is_c_order(std::span<const std::uint8_t> dim_order, std::span<const std::int32_t> sizes) {
    std::uint8_t last = 0;
    for (const std::uint8_t d : dim_order) {
        if (sizes[d] == 1) continue;
        if (d < last) return false;
        last = d;
    }
    return true;
}

std::vector<std::uint8_t> to_c_order(Bytes stored, std::size_t element_bytes, std::span<const std::uint8_t> dim_order,
                                     std::span<const std::int32_t> sizes) {
    std::vector<std::uint8_t> out(stored.begin(), stored.end());
    if (is_c_order(dim_order, sizes)) return out;
    for_each_element(dim_order, sizes, [&](std::size_t c, std::size_t s) {
        std::memcpy(out.data() + c * element_bytes, stored.data() + s * element_bytes, element_bytes);
    });
    return out;
}

std::vector<std::uint8_t> from_c_order(Bytes bytes, std::size_t element_bytes, std::span<const std::uint8_t> dim_order,
                                       std::span<const std::int32_t> sizes) {
    std::vector<std::uint8_t> out(bytes.begin(), bytes.end());
    if (is_c_order(dim_order, sizes)) return out;
    for_each_element(dim_order, sizes, [&](std::size_t c, std::size_t s) {
        std::memcpy(out.data() + s * element_bytes, bytes.data() + c * element_bytes, element_bytes);
    });
    return out;
}

}  // namespace talpa::runtime::host
