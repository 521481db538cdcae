// From a picture to the tensor that a classifier wants: shorter side to N (bilinear, antialiased), centre crop, values
// scaled, normalised and, for integer inputs, quantized. The geometry is torchvision's Resize(N) and CenterCrop.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/host/error.h"
#include "image/picture.h"
#include "image/resize.h"

namespace talpa::image {

enum class Layout : std::uint8_t { Nchw, Nhwc };
enum class Element : std::uint8_t { Float32, Int8, UInt8, Int16 };
[[nodiscard]] constexpr std::size_t element_bytes(Element e) {
    return e == Element::Float32 ? 4 : e == Element::Int16 ? 2 : 1;
}

/// What a network expects. A byte x of channel c becomes v = (low + x * (high - low) / 255 - mean[c]) / std[c]; an
/// integer element is round(v * (1 / scale)) + zero_point, ties to even, clamped to its type.
struct PreprocessSpec {
    std::uint32_t width = 224, height = 224;  ///< of the tensor
    std::uint32_t shorter_side = 256;  ///< to which the picture is scaled before the crop; at least both of the above
    std::uint32_t channels = 3;        ///< 3: RGB; 1: luma as ITU-R 601 weighs it (Pillow's convert("L"))
    Layout layout = Layout::Nchw;
    float low = -1.0f, high = 1.0f;
    std::array<float, 3> mean{0, 0, 0}, std{1, 1, 1};
    Element element = Element::Float32;
    float scale = 1.0f;  ///< of an integer element
    std::int32_t zero_point = 0;
};

/// The size to which the usual recipe scales before cropping `crop`: 256 for 224, and in that proportion.
[[nodiscard]] constexpr std::uint32_t usual_shorter_side(std::uint32_t crop) {
    return (crop * 8 + 3) / 7;
}

/// Size after scaling the shorter side to `shorter_side`: the longer one is cut to an integer, as torchvision does.
[[nodiscard]] ScaledSize scaled_size(std::uint32_t width, std::uint32_t height, std::uint32_t shorter_side);
/// The centre crop, its offset rounded half to even (torchvision: int(round((h - crop) / 2.0))).
[[nodiscard]] Window centre_crop(ScaledSize size, std::uint32_t width, std::uint32_t height);

/// Scaled and cropped to width x height, still 8-bit RGB.
[[nodiscard]] host::Result<Picture> fit(const Picture& picture, const PreprocessSpec& spec);
/// The tensor's bytes, batch of one, of a picture that `fit` made for the same spec.
[[nodiscard]] host::Result<std::vector<std::uint8_t>> tensor_of_fitted(const Picture& fitted,
                                                                       const PreprocessSpec& spec);
/// Both steps. InvalidArgument when the spec cannot be (a side or a std of 0, two channels …).
[[nodiscard]] host::Result<std::vector<std::uint8_t>> to_tensor(const Picture& picture, const PreprocessSpec& spec);

}  // namespace talpa::image
