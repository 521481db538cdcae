#include "image/preprocess.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/core/byte_reader.h"

namespace talpa::image {
namespace {

host::Result<void> check(const PreprocessSpec& spec) {
    if (spec.width == 0 || spec.height == 0 || spec.width > 65535 || spec.height > 65535)
        return host::failure(ErrorCode::InvalidArgument, "cannot make a picture of {} x {} pixels", spec.width,
                             spec.height);
    if (spec.shorter_side < std::max(spec.width, spec.height) || spec.shorter_side > 65535)
        return host::failure(ErrorCode::InvalidArgument, "a shorter side of {} pixels cannot be cropped to {} x {}",
                             spec.shorter_side, spec.width, spec.height);
    if (spec.channels != 1 && spec.channels != 3)
        return host::failure(ErrorCode::InvalidArgument, "{} channels: a picture has 3, or 1 as grey", spec.channels);
    for (const float s : spec.std)
        if (!std::isfinite(s) || s == 0)
            return host::failure(ErrorCode::InvalidArgument, "a standard deviation of {}", s);
    if (spec.element != Element::Float32 && !(std::isfinite(spec.scale) && spec.scale > 0))
        return host::failure(ErrorCode::InvalidArgument, "a scale of {}", spec.scale);
    return {};
}

/// What a byte becomes, as the bits of the element.
std::uint32_t element_of(unsigned byte, unsigned channel, const PreprocessSpec& spec) {
    // x / 127.5 - 1 when low, high are -1, 1: a division by a float, as PyTorch and NumPy do it.
    const float unit = 255.0f / (spec.high - spec.low);
    const float ranged = spec.high == spec.low ? spec.low : static_cast<float>(byte) / unit + spec.low;
    const float value = (ranged - spec.mean[channel]) / spec.std[channel];
    const auto quantized = [&](std::int32_t low, std::int32_t high) {
        // By the reciprocal in float32, as ExecuTorch's quantize_per_tensor does it.
        const double q = double{std::nearbyint(value * (1.0f / spec.scale))} + spec.zero_point;
        return static_cast<std::int32_t>(std::clamp(q, static_cast<double>(low), static_cast<double>(high)));
    };
    switch (spec.element) {
        case Element::Float32:
            return std::bit_cast<std::uint32_t>(value);
        case Element::Int8:
            return static_cast<std::uint32_t>(quantized(-128, 127));
        case Element::UInt8:
            return static_cast<std::uint32_t>(quantized(0, 255));
        case Element::Int16:
            return static_cast<std::uint32_t>(quantized(-32768, 32767));
    }
    return 0;
}

std::uint8_t luma(const std::uint8_t* rgb) {
    return static_cast<std::uint8_t>((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u) >> 16);
}

void store(std::uint8_t* to, std::uint32_t bits, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) to[i] = static_cast<std::uint8_t>(bits >> (8 * i));
}

}  // namespace

ScaledSize scaled_size(std::uint32_t width, std::uint32_t height, std::uint32_t shorter_side) {
    const auto longer = [&](std::uint32_t l, std::uint32_t s) {
        return static_cast<std::uint64_t>(static_cast<double>(std::uint64_t{shorter_side} * l) / s);
    };
    if (width <= height) return {shorter_side, longer(height, width)};
    return {longer(width, height), shorter_side};
}

Window centre_crop(ScaledSize size, std::uint32_t width, std::uint32_t height) {
    const auto offset = [](std::uint64_t full, std::uint32_t crop) {
        const std::uint64_t spare = full - crop, half = spare / 2;
        return spare % 2 == 0 ? half : half + half % 2;  // x.5 goes to the even neighbour
    };
    return {offset(size.width, width), offset(size.height, height), width, height};
}

host::Result<Picture> fit(const Picture& picture, const PreprocessSpec& spec) {
    TRY(check(spec));
    const ScaledSize size = scaled_size(picture.width, picture.height, spec.shorter_side);
    return resize_bilinear(picture, size, centre_crop(size, spec.width, spec.height));
}

host::Result<std::vector<std::uint8_t>> to_tensor(const Picture& picture, const PreprocessSpec& spec) {
    TRY_ASSIGN(const Picture fitted, fit(picture, spec));
    return tensor_of_fitted(fitted, spec);
}

host::Result<std::vector<std::uint8_t>> tensor_of_fitted(const Picture& fitted, const PreprocessSpec& spec) {
    TRY(check(spec));
    if (fitted.width != spec.width || fitted.height != spec.height)
        return host::failure(ErrorCode::InvalidArgument, "a picture of {} x {} pixels, {} x {} are wanted",
                             fitted.width, fitted.height, spec.width, spec.height);
    std::array<std::array<std::uint32_t, 256>, 3> elements;
    for (unsigned c = 0; c < spec.channels; ++c)
        for (unsigned byte = 0; byte < 256; ++byte) elements[c][byte] = element_of(byte, c, spec);

    const std::size_t pixels = std::size_t{spec.width} * spec.height, bytes = element_bytes(spec.element);
    const std::size_t channel_step = spec.layout == Layout::Nchw ? pixels : 1;
    const std::size_t pixel_step = spec.layout == Layout::Nchw ? 1 : spec.channels;
    std::vector<std::uint8_t> tensor(pixels * spec.channels * bytes);
    for (std::size_t i = 0; i < pixels; ++i) {
        const std::uint8_t* rgb = fitted.rgb.data() + i * 3;
        for (unsigned c = 0; c < spec.channels; ++c) {
            const std::uint8_t byte = spec.channels == 1 ? luma(rgb) : rgb[c];
            store(tensor.data() + (i * pixel_step + c * channel_step) * bytes, elements[c][byte], bytes);
        }
    }
    return tensor;
}

}  // namespace talpa::image
