// The one thing that matters in a photo's EXIF data: how the camera was held. A bounds-checked reader of the TIFF
// structure (TIFF 6.0, section 2; Exif 2.32, tag 0x0112) that looks at IFD 0 only.
#pragma once

#include <cstdint>

#include "base/core/byte_reader.h"

namespace talpa::image {

/// Exif values 1..8: where row 0 and column 0 of the stored picture are seen.
enum class Orientation : std::uint8_t {
    Upright = 1,
    MirroredHorizontally = 2,
    Rotated180 = 3,
    MirroredVertically = 4,
    Transposed = 5,       ///< mirrored along the diagonal from top left to bottom right
    RotateClockwise = 6,  ///< turn by 90 degrees clockwise to see it upright
    Transversed = 7,      ///< mirrored along the other diagonal
    RotateAnticlockwise = 8,
};
[[nodiscard]] constexpr bool swaps_sides(Orientation o) {
    return o >= Orientation::Transposed;
}

/// The orientation in a TIFF structure (what follows "Exif\0\0" in a JPEG; PNG's eXIf and WebP's EXIF chunks; a leading
/// "Exif\0\0" is skipped). Upright when there is none or the data make no sense: bad metadata do not spoil a good
/// picture.
[[nodiscard]] Orientation exif_orientation(Bytes tiff);

}  // namespace talpa::image
