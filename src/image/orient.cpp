#include "image/orient.h"

#include <algorithm>
#include <array>
#include <utility>

namespace talpa::image {
namespace {

using Pixel = std::array<std::uint8_t, 3>;

Pixel* pixels(Picture& picture, std::uint32_t y) {
    return reinterpret_cast<Pixel*>(picture.row(y));
}

void mirror_rows(Picture& picture) {
    for (std::uint32_t y = 0; y < picture.height; ++y)
        std::reverse(pixels(picture, y), pixels(picture, y) + picture.width);
}

void flip(Picture& picture) {
    for (std::uint32_t top = 0, bottom = picture.height - 1; top < bottom; ++top, --bottom)
        std::swap_ranges(picture.row(top), picture.row(top) + std::size_t{picture.width} * 3, picture.row(bottom));
}

/// Rows become columns, in square tiles so that both sides stay in the cache.
Picture transposed(const Picture& from) {
    constexpr std::uint32_t kTile = 64;
    Picture to{.width = from.height, .height = from.width, .rgb = std::vector<std::uint8_t>(from.rgb.size())};
    for (std::uint32_t y0 = 0; y0 < from.height; y0 += kTile)
        for (std::uint32_t x0 = 0; x0 < from.width; x0 += kTile)
            for (std::uint32_t y = y0; y < std::min(y0 + kTile, from.height); ++y)
                for (std::uint32_t x = x0; x < std::min(x0 + kTile, from.width); ++x)
                    std::copy_n(from.row(y) + std::size_t{x} * 3, 3, to.row(x) + std::size_t{y} * 3);
    return to;
}

}  // namespace

Picture upright(Picture picture, Orientation orientation) {
    if (swaps_sides(orientation)) picture = transposed(picture);
    switch (orientation) {
        case Orientation::Upright:
        case Orientation::Transposed:
            break;
        case Orientation::MirroredHorizontally:
        case Orientation::RotateClockwise:
            mirror_rows(picture);
            break;
        case Orientation::MirroredVertically:
        case Orientation::RotateAnticlockwise:
            flip(picture);
            break;
        case Orientation::Rotated180:
        case Orientation::Transversed:
            mirror_rows(picture);
            flip(picture);
            break;
    }
    return picture;
}

}  // namespace talpa::image
