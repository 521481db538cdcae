// GIF's first frame, by giflib. As Pillow does it, the canvas is the logical screen, grown if the frame does not fit
// it, and what the frame leaves free has the transparent index's colour, or that of index 0.
#include <gif_lib.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "image/formats.h"

namespace talpa::image {
namespace {

struct Source {
    Bytes rest;
};

int read_from(GifFileType* gif, GifByteType* to, int wanted) {
    auto& source = *static_cast<Source*>(gif->UserData);
    const std::size_t n = std::min<std::size_t>(static_cast<std::size_t>(std::max(wanted, 0)), source.rest.size());
    if (n != 0) std::memcpy(to, source.rest.data(), n);
    source.rest = source.rest.subspan(n);
    return static_cast<int>(n);
}

struct Close {
    void operator()(GifFileType* gif) const {
        int ignored = 0;
        DGifCloseFile(gif, &ignored);
    }
};
using File = std::unique_ptr<GifFileType, Close>;

std::unexpected<host::Error> malformed(int code) {
    if (code == D_GIF_ERR_READ_FAILED || code == D_GIF_ERR_NO_SCRN_DSCR || code == D_GIF_ERR_NO_IMAG_DSCR ||
        code == D_GIF_ERR_EOF_TOO_SOON || code == D_GIF_ERR_IMAGE_DEFECT)
        return host::failure(ErrorCode::InvalidPicture, "cut short: the data end too early");
    const char* const text = GifErrorString(code);
    return host::failure(ErrorCode::InvalidPicture, "malformed: {}", text != nullptr ? text : "unknown error");
}

/// Reads one extension; the transparent index if it is a graphics control block that has one.
host::Result<std::optional<unsigned>> read_extension(GifFileType& gif) {
    std::optional<unsigned> transparent;
    int code = 0;
    GifByteType* block = nullptr;
    if (DGifGetExtension(&gif, &code, &block) != GIF_OK) return malformed(gif.Error);
    while (block != nullptr) {
        constexpr int kHasTransparent = 1;
        if (code == GRAPHICS_EXT_FUNC_CODE && block[0] >= 4 && (block[1] & kHasTransparent) != 0)
            transparent = block[4];
        if (DGifGetExtensionNext(&gif, &block) != GIF_OK) return malformed(gif.Error);
    }
    return transparent;
}

struct Colours {
    const ColorMapObject* map;
    void put(std::uint8_t* rgb, unsigned index) const {
        if (map != nullptr && index < static_cast<unsigned>(map->ColorCount)) {
            const GifColorType& c = map->Colors[index];
            rgb[0] = c.Red, rgb[1] = c.Green, rgb[2] = c.Blue;
        } else {
            rgb[0] = rgb[1] = rgb[2] = static_cast<std::uint8_t>(index);
        }
    }
};

/// The frame whose descriptor was read.
host::Result<Picture> read_frame(GifFileType& gif, std::optional<unsigned> transparent, const Limits& limits) {
    const GifImageDesc& frame = gif.Image;
    if (frame.Width <= 0 || frame.Height <= 0 || frame.Left < 0 || frame.Top < 0)
        return host::failure(ErrorCode::InvalidPicture, "the first frame is {} x {} pixels", frame.Width, frame.Height);
    TRY_ASSIGN(Picture picture,
               make_picture(static_cast<std::uint64_t>(std::max(gif.SWidth, frame.Left + frame.Width)),
                            static_cast<std::uint64_t>(std::max(gif.SHeight, frame.Top + frame.Height)), limits));
    const Colours colours{frame.ColorMap != nullptr ? frame.ColorMap : gif.SColorMap};
    for (std::size_t i = 0; i < picture.rgb.size(); i += 3) colours.put(&picture.rgb[i], transparent.value_or(0));

    std::vector<GifPixelType> line(static_cast<std::size_t>(frame.Width));
    // The four passes of an interlaced frame: first row and step.
    static constexpr int kPasses[][2] = {{0, 8}, {4, 8}, {2, 4}, {1, 2}};
    static constexpr int kWhole[][2] = {{0, 1}};
    const std::span<const int[2]> passes = frame.Interlace ? std::span<const int[2]>(kPasses) : std::span(kWhole);
    for (const auto& [first, step] : passes)
        for (int y = first; y < frame.Height; y += step) {
            if (DGifGetLine(&gif, line.data(), frame.Width) != GIF_OK) return malformed(gif.Error);
            std::uint8_t* to = picture.row(static_cast<std::uint32_t>(frame.Top + y)) + std::size_t(frame.Left) * 3;
            for (const GifPixelType index : line) colours.put(to, index), to += 3;
        }
    return picture;
}

}  // namespace

host::Result<Decoded> decode_gif(Bytes file, const Limits& limits) {
    Source source{file};
    int error = 0;
    const File gif(DGifOpen(&source, read_from, &error));
    if (gif == nullptr) return malformed(error);
    std::optional<unsigned> transparent;
    for (;;) {
        GifRecordType type = UNDEFINED_RECORD_TYPE;
        if (DGifGetRecordType(gif.get(), &type) != GIF_OK) return malformed(gif->Error);
        if (type == EXTENSION_RECORD_TYPE) {
            TRY_ASSIGN(const auto found, read_extension(*gif));
            if (found) transparent = found;
        } else if (type == IMAGE_DESC_RECORD_TYPE) {
            if (DGifGetImageDesc(gif.get()) != GIF_OK) return malformed(gif->Error);
            Decoded out;
            TRY_ASSIGN(out.picture, read_frame(*gif, transparent, limits));
            return out;
        } else {
            return host::failure(ErrorCode::InvalidPicture, "there is no picture in it");
        }
    }
}

}  // namespace talpa::image
