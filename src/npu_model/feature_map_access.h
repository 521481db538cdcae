// Feature maps in memory as plain arrays (ethos-u65, section 4.1): the reference kernels load an input whole, compute
// on [y][x][c], and store element by element.
#pragma once

#include <cstdint>
#include <vector>

#include "base/core/byte_reader.h"
#include "npu/operation.h"

namespace talpa::npu_model {

[[nodiscard]] inline std::int32_t load_element(const std::uint8_t* p, npu::ElementType type) {
    switch (type.bytes) {
        case 1:
            return type.is_signed ? load_le<std::int8_t>(p) : load_le<std::uint8_t>(p);
        case 2:
            return type.is_signed ? load_le<std::int16_t>(p) : load_le<std::uint16_t>(p);
        default:
            return load_le<std::int32_t>(p);
    }
}

/// Stores the low bytes of `value`.
inline void store_element(std::uint8_t* p, npu::ElementType type, std::int64_t value) {
    switch (type.bytes) {
        case 1:
            store_le(p, static_cast<std::uint8_t>(value));
            break;
        case 2:
            store_le(p, static_cast<std::uint16_t>(value));
            break;
        default:
            store_le(p, static_cast<std::uint32_t>(value));
            break;
    }
}

struct DenseMap {
    std::uint32_t height = 0, width = 0, depth = 0;
    std::vector<std::int32_t> values;  // [y][x][c]

    [[nodiscard]] const std::int32_t* at(std::uint32_t y, std::uint32_t x) const {
        return values.data() + (std::size_t{y} * width + x) * depth;
    }
};

/// Reads all elements, less `zero_point`. Every byte must have been checked to lie in the region at `memory`.
[[nodiscard]] inline DenseMap load_map(const std::uint8_t* memory, const npu::FeatureMap& fm, std::int32_t zero_point) {
    DenseMap map{fm.height, fm.width, fm.depth, {}};
    map.values.resize(std::size_t{fm.height} * fm.width * fm.depth);
    std::int32_t* out = map.values.data();
    for (std::uint32_t y = 0; y < fm.height; ++y)
        for (std::uint32_t x = 0; x < fm.width; ++x)
            for (std::uint32_t c = 0; c < fm.depth; ++c)
                *out++ = load_element(memory + fm.offset_of(y, x, c), fm.type) - zero_point;
    return map;
}

}  // namespace talpa::npu_model
