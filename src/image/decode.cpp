#include "image/decode.h"

#include <fmt/format.h>

#include <new>
#include <string>

#include "image/formats.h"
#include "image/orient.h"

namespace talpa::image {
namespace {

/// What files that are no picture of ours begin with, for a better message. `at`: where the mark stands.
struct Signature {
    std::size_t at;
    std::string_view mark;
    std::string_view what;
};
constexpr Signature kOthers[] = {
    {0, std::string_view("II*\0", 4), "a TIFF"},
    {0, std::string_view("MM\0*", 4), "a TIFF"},
    {4, "ftypavif", "an AVIF picture"},
    {4, "ftyphei", "a HEIC picture"},
    {4, "ftypmif1", "a HEIF picture"},
    {4, "ftyp", "a video"},
    {0, std::string_view("\0\0\0\x0CjP  ", 8), "a JPEG 2000 picture"},
    {0, std::string_view("\0\0\0\x0CJXL ", 8), "a JPEG XL picture"},
    {0, "\xFF\x0A", "a JPEG XL picture"},
    {0, "%PDF", "a PDF"},
    {0, "<svg", "an SVG drawing"},
    {0, "<?xml", "an XML file"},
    {0, "P6", "a PPM picture"},
    {0, "PK\x03\x04", "a zip archive"},
    {0,
     "\x7F"
     "ELF",
     "an ELF program"},
};

bool has_mark(Bytes file, std::size_t at, std::string_view mark) {
    return range_inside(at, mark.size(), file.size()) &&
           std::string_view(reinterpret_cast<const char*>(file.data()) + at, mark.size()) == mark;
}

host::Result<Decoded> decode_as(Format format, Bytes file, const Limits& limits) {
    switch (format) {
        case Format::Jpeg:
            return decode_jpeg(file, limits);
        case Format::Png:
            return decode_png(file, limits);
        case Format::WebP:
            return decode_webp(file, limits);
        case Format::Gif:
            return decode_gif(file, limits);
        case Format::Bmp:
            return decode_bmp(file, limits);
    }
    return host::failure(ErrorCode::Internal, "unknown format {}", static_cast<int>(format));
}

}  // namespace

std::string_view format_name(Format format) {
    switch (format) {
        case Format::Jpeg:
            return "JPEG";
        case Format::Png:
            return "PNG";
        case Format::WebP:
            return "WebP";
        case Format::Gif:
            return "GIF";
        case Format::Bmp:
            return "BMP";
    }
    return "unknown";
}

host::Result<Format> recognise(Bytes file) {
    if (has_mark(file, 0, "\xFF\xD8\xFF")) return Format::Jpeg;
    if (has_mark(file, 0, "\x89PNG\r\n\x1A\n")) return Format::Png;
    if (has_mark(file, 0, "RIFF") && has_mark(file, 8, "WEBP")) return Format::WebP;
    if (has_mark(file, 0, "GIF87a") || has_mark(file, 0, "GIF89a")) return Format::Gif;
    if (has_mark(file, 0, "BM")) return Format::Bmp;
    if (file.empty()) return host::failure(ErrorCode::InvalidPicture, "the file is empty");
    std::string begins;
    for (const Signature& other : kOthers)
        if (has_mark(file, other.at, other.mark)) {
            begins = fmt::format("this is {}", other.what);
            break;
        }
    if (begins.empty()) {
        begins = "the file begins with";
        for (const std::uint8_t byte : file.first(std::min<std::size_t>(file.size(), 8)))
            begins += fmt::format(" {:02X}", byte);
    }
    return std::unexpected(host::Error(ErrorCode::InvalidPicture,
                                       fmt::format("not a JPEG, PNG, WebP, GIF or BMP picture: {}", begins),
                                       "convert the picture to PNG or JPEG first"));
}

host::Result<Picture> make_picture(std::uint64_t width, std::uint64_t height, const Limits& limits) {
    if (width == 0 || height == 0)
        return host::failure(ErrorCode::InvalidPicture, "the picture is {} x {} pixels: it has none", width, height);
    if (width > UINT32_MAX || height > UINT32_MAX || width > limits.max_pixels / height)
        return host::failure(ErrorCode::OutOfResources,
                             "the picture is {} x {} pixels, more than the limit of {} million", width, height,
                             static_cast<double>(limits.max_pixels) / 1e6);
    try {
        return Picture{.width = static_cast<std::uint32_t>(width),
                       .height = static_cast<std::uint32_t>(height),
                       .rgb = std::vector<std::uint8_t>(width * height * 3)};
    } catch (const std::bad_alloc&) {
        return host::failure(ErrorCode::OutOfResources, "no memory for a picture of {} x {} pixels", width, height);
    }
}

host::Result<Picture> decode(Bytes file, const Limits& limits) {
    if (file.size() > limits.max_file_bytes)
        return host::failure(ErrorCode::OutOfResources, "the file has {} bytes, more than the limit of {}", file.size(),
                             limits.max_file_bytes);
    TRY_ASSIGN(const Format format, recognise(file));
    const auto name = [&] { return std::string(format_name(format)); };
    try {
        auto decoded = decode_as(format, file, limits);
        if (!decoded) return std::unexpected(std::move(decoded.error()).with_context(name()));
        return upright(std::move(decoded->picture), decoded->orientation);
    } catch (const std::bad_alloc&) {
        return host::failure(ErrorCode::OutOfResources, "{}: no memory to decode it", name());
    }
}

}  // namespace talpa::image
