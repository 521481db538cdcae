// From the bytes of a picture file to upright RGB, as Pillow's ImageOps.exif_transpose(Image.open(f)).convert("RGB")
// gives it: grey is replicated, palettes are looked up, alpha is dropped (not blended), CMYK is taken as Adobe's
// inverted one, the first frame of an animation is taken. One difference: of 16-bit grey the high byte is kept, where
// Pillow saturates.
#pragma once

#include <string_view>

#include "base/core/byte_reader.h"
#include "base/host/error.h"
#include "image/picture.h"

namespace talpa::image {

enum class Format : std::uint8_t { Jpeg, Png, WebP, Gif, Bmp };
[[nodiscard]] std::string_view format_name(Format format);

/// By the first bytes, never by the file's name. InvalidPicture for anything else, saying what it looks like.
[[nodiscard]] host::Result<Format> recognise(Bytes file);

/// Decodes JPEG, PNG, WebP, GIF or BMP. Errors: InvalidPicture (not a picture, cut short, malformed), NotSupported (a
/// kind of these formats that is not read), OutOfResources (more than the limits allow; nothing of that size was
/// allocated).
[[nodiscard]] host::Result<Picture> decode(Bytes file, const Limits& limits = {});

}  // namespace talpa::image
