// Inside the folder: the decoder of each format, what they share, and what decode.cpp makes of it.
#pragma once

#include "base/core/byte_reader.h"
#include "base/host/error.h"
#include "image/exif.h"
#include "image/picture.h"

namespace talpa::image {

/// As the file stores it: `orientation` is still to be applied.
struct Decoded {
    Picture picture;
    Orientation orientation = Orientation::Upright;
};

[[nodiscard]] host::Result<Decoded> decode_jpeg(Bytes file, const Limits& limits);
[[nodiscard]] host::Result<Decoded> decode_png(Bytes file, const Limits& limits);
[[nodiscard]] host::Result<Decoded> decode_webp(Bytes file, const Limits& limits);
[[nodiscard]] host::Result<Decoded> decode_bmp(Bytes file, const Limits& limits);
[[nodiscard]] host::Result<Decoded> decode_gif(Bytes file, const Limits& limits);

/// A picture of this size with all bytes 0; InvalidPicture when a side is 0, OutOfResources when it has too many pixels
/// or the memory is not to be had.
[[nodiscard]] host::Result<Picture> make_picture(std::uint64_t width, std::uint64_t height, const Limits& limits);

}  // namespace talpa::image
