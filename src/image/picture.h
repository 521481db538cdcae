// A decoded picture, and the limits within which one may be decoded.
#pragma once

#include <cstdint>
#include <vector>

namespace talpa::image {

/// 8-bit RGB, upright, rows from top to bottom without gaps: width * height * 3 bytes. Neither side is 0.
struct Picture {
    std::uint32_t width = 0, height = 0;
    std::vector<std::uint8_t> rgb;

    [[nodiscard]] const std::uint8_t* row(std::uint32_t y) const { return rgb.data() + std::size_t{y} * width * 3; }
    [[nodiscard]] std::uint8_t* row(std::uint32_t y) { return rgb.data() + std::size_t{y} * width * 3; }
};

/// What a stranger's picture may cost. Checked against the header before anything of the picture's size is allocated.
struct Limits {
    std::uint64_t max_pixels = 100'000'000;
    std::uint64_t max_file_bytes = 512ull << 20;
};

}  // namespace talpa::image
