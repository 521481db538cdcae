// BMP, own reader: every header from OS/2 1.x (12 bytes) to V5 (124), 1, 4, 8, 16, 24 and 32 bits, bit fields, RLE8 and
// RLE4, rows in either direction. Follows the structures of the Windows GDI documentation (BITMAPINFOHEADER …
// BITMAPV5HEADER). Left out: 2-bit palettes of Windows CE, and BMPs that merely wrap a JPEG or PNG for a printer.
#include <algorithm>
#include <array>
#include <bit>
#include <optional>

#include "image/bmp_rle.h"
#include "image/formats.h"

namespace talpa::image {
namespace {

constexpr std::size_t kFileHeaderBytes = 14;
enum class Compression : std::uint32_t {
    None = 0,
    Rle8 = 1,
    Rle4 = 2,
    BitFields = 3,
    Jpeg = 4,
    Png = 5,
    AlphaBitFields = 6
};

struct Header {
    std::uint32_t header_bytes = 0;  ///< of the second header
    std::uint32_t pixels_at = 0;     ///< offset of the pixel data in the file
    std::uint64_t width = 0, height = 0;
    bool top_down = false;
    std::uint32_t bits = 0;  ///< per pixel
    Compression compression = Compression::None;
    std::uint32_t colors_used = 0;  ///< 0: as many as the bits allow
};

/// The two headers of different ages: sizes of 16 bits in the oldest, of 32 signed bits in the others.
talpa::Result<Header> read_header(const ByteReader& file) {
    Header h;
    TRY_ASSIGN(h.pixels_at, file.at<std::uint32_t>(10));
    TRY_ASSIGN(h.header_bytes, file.at<std::uint32_t>(14));
    const std::uint32_t size = h.header_bytes;
    if (size == 12) {
        TRY_ASSIGN(h.width, file.at<std::uint16_t>(18));
        TRY_ASSIGN(h.height, file.at<std::uint16_t>(20));
        TRY_ASSIGN(h.bits, file.at<std::uint16_t>(24));
        return h;
    }
    if (size != 16 && size != 40 && size != 52 && size != 56 && size != 64 && size != 108 && size != 124)
        return fail(ErrorCode::NotSupported, "unknown header of {} bytes", size);
    TRY_ASSIGN(const auto width, file.at<std::int32_t>(18));
    TRY_ASSIGN(const auto height, file.at<std::int32_t>(22));
    if (width < 0) return fail(ErrorCode::InvalidPicture, "negative width {}", width);
    h.width = static_cast<std::uint64_t>(width);
    h.top_down = height < 0;
    h.height = static_cast<std::uint64_t>(h.top_down ? -std::int64_t{height} : std::int64_t{height});
    TRY_ASSIGN(h.bits, file.at<std::uint16_t>(28));
    if (size == 16) return h;
    TRY_ASSIGN(const auto compression, file.at<std::uint32_t>(30));
    // OS/2 2.x uses 3 for a Huffman code of faxes and 4 for 24-bit RLE.
    if (compression > 6 || (size == 64 && compression > 2))
        return fail(ErrorCode::NotSupported, "compression {} is not read", compression);
    h.compression = static_cast<Compression>(compression);
    TRY_ASSIGN(h.colors_used, file.at<std::uint32_t>(46));
    return h;
}

talpa::Result<void> check_kind(const Header& h) {
    const auto b = h.bits;
    switch (h.compression) {
        case Compression::None:
            if (b == 1 || b == 4 || b == 8 || b == 16 || b == 24 || b == 32) return {};
            break;
        case Compression::Rle8:
            if (b == 8) return {};
            break;
        case Compression::Rle4:
            if (b == 4) return {};
            break;
        case Compression::BitFields:
        case Compression::AlphaBitFields:
            if (b == 16 || b == 32) return {};
            break;
        case Compression::Jpeg:
        case Compression::Png:
            return fail(ErrorCode::NotSupported, "a wrapped JPEG or PNG is not read");
    }
    return fail(ErrorCode::NotSupported, "{} bits per pixel with compression {} are not read", b,
                static_cast<unsigned>(h.compression));
}

/// One colour of a 16- or 32-bit pixel: the bits of `mask`, stretched to 0..255 (rounded down, as Pillow does).
struct Channel {
    std::uint32_t mask = 0;
    unsigned shift = 0;
    std::uint32_t max = 0;

    explicit Channel(std::uint32_t m = 0)
        : mask(m), shift(m == 0 ? 0 : static_cast<unsigned>(std::countr_zero(m))), max(m >> shift) {}
    [[nodiscard]] bool contiguous() const { return (max & (max + 1)) == 0; }
    [[nodiscard]] std::uint8_t of(std::uint32_t pixel) const {
        return max == 0 ? 0 : static_cast<std::uint8_t>(std::uint64_t{(pixel & mask) >> shift} * 255 / max);
    }
};
using Channels = std::array<Channel, 3>;

talpa::Result<Channels> read_channels(const ByteReader& file, const Header& h) {
    if (h.compression == Compression::None)
        return h.bits == 16 ? Channels{Channel(0x7C00), Channel(0x03E0), Channel(0x001F)}
                            : Channels{Channel(0xFF0000), Channel(0x00FF00), Channel(0x0000FF)};
    Channels channels;
    for (unsigned c = 0; c < 3; ++c) {  // inside the later headers, right behind the 40 bytes of the first
        TRY_ASSIGN(const auto mask, file.at<std::uint32_t>(kFileHeaderBytes + 40 + 4 * c));
        channels[c] = Channel(mask);
        if (!channels[c].contiguous()) return fail(ErrorCode::InvalidPicture, "colour mask {} has gaps", hex(mask));
    }
    return channels;
}

using Palette = std::array<std::array<std::uint8_t, 3>, 256>;

/// As RGB. Colours that the file does not have are black.
talpa::Result<Palette> read_palette(const ByteReader& file, const Header& h) {
    Palette palette{};
    const std::uint32_t most = 1u << h.bits;
    const std::uint32_t count = h.colors_used == 0 || h.colors_used > most ? most : h.colors_used;
    const std::size_t entry = h.header_bytes == 12 ? 3 : 4;
    const std::size_t start = kFileHeaderBytes + h.header_bytes;
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::size_t at = start + i * entry;
        if (at + entry > h.pixels_at && h.pixels_at >= start) break;  // the pixels begin where the palette should go on
        TRY_ASSIGN(const Bytes bgr, file.slice(at, 3));
        palette[i] = {bgr[2], bgr[1], bgr[0]};
    }
    return palette;
}

void unpack_palette_row(Bytes row, unsigned bits, const Palette& palette, std::uint8_t* rgb, std::uint32_t width) {
    const unsigned per_byte = 8 / bits, mask = (1u << bits) - 1;
    for (std::uint32_t x = 0; x < width; ++x, rgb += 3) {
        const unsigned index = row[x / per_byte] >> (8 - bits - (x % per_byte) * bits) & mask;
        std::copy_n(palette[index].data(), 3, rgb);
    }
}

void unpack_direct_row(Bytes row, unsigned bits, const Channels& channels, std::uint8_t* rgb, std::uint32_t width) {
    const std::size_t step = bits / 8;
    const std::uint8_t* p = row.data();
    for (std::uint32_t x = 0; x < width; ++x, p += step, rgb += 3) {
        if (bits == 24) {
            rgb[0] = p[2], rgb[1] = p[1], rgb[2] = p[0];
            continue;
        }
        const std::uint32_t pixel = bits == 16 ? load_le<std::uint16_t>(p) : load_le<std::uint32_t>(p);
        for (unsigned c = 0; c < 3; ++c) rgb[c] = channels[c].of(pixel);
    }
}

host::Result<Picture> read_rows(Bytes file, const Header& h, const Palette& palette, const Channels& channels,
                                const Limits& limits) {
    const std::uint64_t row_bytes = (h.width * h.bits + 7) / 8,
                        stride = round_up(h.width * h.bits, std::uint64_t{32}) / 8;
    // Known before the picture is allocated, so that a short file cannot ask for much. The last row may lack its
    // padding.
    if (h.height != 0 && h.width != 0 && h.width <= UINT32_MAX) {
        const std::uint64_t available = file.size() > h.pixels_at ? file.size() - h.pixels_at : 0;
        const std::uint64_t rows = available < row_bytes ? 0 : (available - row_bytes) / stride + 1;
        if (rows < h.height && h.width <= limits.max_pixels / h.height)
            return host::failure(ErrorCode::InvalidPicture, "cut short: the data end after row {} of {}", rows,
                                 h.height);
    }
    TRY_ASSIGN(Picture picture, make_picture(h.width, h.height, limits));
    for (std::uint32_t y = 0; y < picture.height; ++y) {
        const Bytes row = file.subspan(h.pixels_at + y * stride, row_bytes);
        std::uint8_t* to = picture.row(h.top_down ? y : picture.height - 1 - y);
        if (h.bits <= 8)
            unpack_palette_row(row, h.bits, palette, to, picture.width);
        else
            unpack_direct_row(row, h.bits, channels, to, picture.width);
    }
    return picture;
}

host::Result<Picture> read_rle(Bytes file, const Header& h, const Palette& palette, const Limits& limits) {
    TRY_ASSIGN(Picture picture, make_picture(h.width, h.height, limits));
    // Pixels that the data skip have index 0.
    for (std::size_t i = 0; i < picture.rgb.size(); i += 3) std::copy_n(palette[0].data(), 3, picture.rgb.data() + i);
    const Bytes data = file.subspan(std::min<std::size_t>(h.pixels_at, file.size()));
    BmpRleReader reader(data, h.bits, picture.width, picture.height);
    while (const auto pixel = reader.next()) {
        std::uint8_t* row = picture.row(h.top_down ? pixel->y : picture.height - 1 - pixel->y);
        std::copy_n(palette[pixel->index].data(), 3, row + std::size_t{pixel->x} * 3);
    }
    if (!reader.complete())
        return host::failure(ErrorCode::InvalidPicture, "cut short: the data end in row {} of {}", reader.row(),
                             picture.height);
    return picture;
}

struct Layout {
    Header header;
    Palette palette{};
    Channels channels;
};

talpa::Result<Layout> read_layout(const ByteReader& file) {
    Layout layout;
    TRY_ASSIGN(layout.header, read_header(file));
    TRY(check_kind(layout.header));
    if (layout.header.bits <= 8) {
        TRY_ASSIGN(layout.palette, read_palette(file, layout.header));
    } else {
        TRY_ASSIGN(layout.channels, read_channels(file, layout.header));
    }
    return layout;
}

}  // namespace

host::Result<Decoded> decode_bmp(Bytes file, const Limits& limits) {
    const auto layout = read_layout(ByteReader(file));
    if (!layout) {
        host::Error error(layout.error());
        if (error.code == ErrorCode::OutOfBounds)
            error = host::Error(ErrorCode::InvalidPicture, fmt::format("cut short in the header: {}", error.message));
        return std::unexpected(std::move(error));
    }
    const auto& [h, palette, channels] = *layout;
    const bool rle = h.compression == Compression::Rle8 || h.compression == Compression::Rle4;
    Decoded out;
    TRY_ASSIGN(out.picture, rle ? read_rle(file, h, palette, limits) : read_rows(file, h, palette, channels, limits));
    return out;
}

}  // namespace talpa::image
