// Resizing as Pillow's Image.resize(size, Image.BILINEAR): a triangle filter as wide as the reduction (so it does not
// alias), two passes with 8-bit rows between them, weights in fixed point with 22 fractional bits. Equal to Pillow byte
// for byte.
#pragma once

#include <cstdint>

#include "base/host/error.h"
#include "image/picture.h"

namespace talpa::image {

/// The size that the whole picture is scaled to, of which only a window is wanted. A side may be huge when the picture
/// is a thin line; only the window is ever computed or stored.
struct ScaledSize {
    std::uint64_t width = 0, height = 0;
};
struct Window {
    std::uint64_t x = 0, y = 0;
    std::uint32_t width = 0, height = 0;
};

/// The window of `picture` scaled to `size`: the same bytes as resizing all of it and then cropping. InvalidArgument
/// when the window is empty or leaves `size`.
[[nodiscard]] host::Result<Picture> resize_bilinear(const Picture& picture, ScaledSize size, Window window);
[[nodiscard]] host::Result<Picture> resize_bilinear(const Picture& picture, std::uint32_t width, std::uint32_t height);

}  // namespace talpa::image
