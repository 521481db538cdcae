// Turns a picture upright.
#pragma once

#include "image/exif.h"
#include "image/picture.h"

namespace talpa::image {

/// The picture as `orientation` says that it is to be seen. Mirrors and half turns happen in place.
[[nodiscard]] Picture upright(Picture picture, Orientation orientation);

}  // namespace talpa::image
