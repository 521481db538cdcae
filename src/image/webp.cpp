// WebP by libwebp. The container is taken apart by libwebpdemux, which also serves the first frame of an animation: it
// may be smaller than the canvas, the rest of which is black once alpha is dropped.
#include <webp/decode.h>
#include <webp/demux.h>

#include <memory>

#include "image/formats.h"

namespace talpa::image {
namespace {

struct DemuxerDelete {
    void operator()(WebPDemuxer* demuxer) const { WebPDemuxDelete(demuxer); }
};

Orientation orientation_in(const WebPDemuxer* demuxer) {
    WebPChunkIterator chunk;
    if (WebPDemuxGetChunk(demuxer, "EXIF", 1, &chunk) == 0) return Orientation::Upright;
    const Orientation orientation = exif_orientation(Bytes(chunk.chunk.bytes, chunk.chunk.size));
    WebPDemuxReleaseChunkIterator(&chunk);
    return orientation;
}

struct Frame {
    WebPIterator iterator{};
    bool found = false;

    explicit Frame(const WebPDemuxer* demuxer) : found(WebPDemuxGetFrame(demuxer, 1, &iterator) != 0) {}
    ~Frame() {
        if (found) WebPDemuxReleaseIterator(&iterator);
    }
    Frame(const Frame&) = delete;
    Frame& operator=(const Frame&) = delete;
};

}  // namespace

host::Result<Decoded> decode_webp(Bytes file, const Limits& limits) {
    const WebPData data{file.data(), file.size()};
    WebPDemuxState state = WEBP_DEMUX_PARSE_ERROR;
    const std::unique_ptr<WebPDemuxer, DemuxerDelete> demuxer(WebPDemuxPartial(&data, &state));
    if (state == WEBP_DEMUX_PARSING_HEADER || state == WEBP_DEMUX_PARSED_HEADER)
        return host::failure(ErrorCode::InvalidPicture, "cut short: the data end too early");
    if (demuxer == nullptr || state != WEBP_DEMUX_DONE)
        return host::failure(ErrorCode::InvalidPicture, "the container is malformed");

    const Frame frame(demuxer.get());
    if (!frame.found) return host::failure(ErrorCode::InvalidPicture, "there is no picture in it");
    const WebPIterator& at = frame.iterator;
    Decoded out;
    TRY_ASSIGN(out.picture, make_picture(WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_WIDTH),
                                         WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_HEIGHT), limits));
    Picture& picture = out.picture;
    int width = 0, height = 0;
    if (WebPGetInfo(at.fragment.bytes, at.fragment.size, &width, &height) == 0 || width != at.width ||
        height != at.height || at.x_offset < 0 || at.y_offset < 0 || width <= 0 || height <= 0 ||
        !range_inside(static_cast<std::uint64_t>(at.x_offset), static_cast<std::uint64_t>(width), picture.width) ||
        !range_inside(static_cast<std::uint64_t>(at.y_offset), static_cast<std::uint64_t>(height), picture.height))
        return host::failure(ErrorCode::InvalidPicture, "the first frame does not fit the canvas of {} x {} pixels",
                             picture.width, picture.height);
    std::uint8_t* const to = picture.row(static_cast<std::uint32_t>(at.y_offset)) + std::size_t(at.x_offset) * 3;
    const std::size_t room = static_cast<std::size_t>(picture.rgb.data() + picture.rgb.size() - to);
    if (WebPDecodeRGBInto(at.fragment.bytes, at.fragment.size, to, room, static_cast<int>(picture.width * 3)) ==
        nullptr)
        return host::failure(ErrorCode::InvalidPicture, "the pixel data are malformed or cut short");
    out.orientation = orientation_in(demuxer.get());
    return out;
}

}  // namespace talpa::image
