// JPEG by libjpeg-turbo. Its errors leave by longjmp, so every call into it happens inside `guarded`, whose callables
// own nothing. Full-size decoding only: libjpeg's scaled decoding differs from a resize by more than one step.
#include <cstddef>
#include <cstdio>

#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <string>

#include "image/formats.h"

namespace talpa::image {
namespace {

/// A progressive file may repeat scans without end, each costing a pass over the whole picture.
constexpr int kMaxScans = 500;

struct Trap {
    jpeg_error_mgr manager{};  // first, so that libjpeg's pointer to it is one to the Trap
    std::jmp_buf jump{};
    std::array<char, JMSG_LENGTH_MAX> message{};
    bool cut_short = false;
    bool too_many_scans = false;
};

Trap& trap_of(j_common_ptr info) {
    return *reinterpret_cast<Trap*>(info->err);
}

[[noreturn]] void leave(j_common_ptr info) {
    Trap& trap = trap_of(info);
    info->err->format_message(info, trap.message.data());
    std::longjmp(trap.jump, 1);
}

/// libjpeg goes on after a warning; most are harmless, but past the end of the data it makes the rest up in grey.
void on_message(j_common_ptr info, int level) {
    if (level >= 0) return;
    ++info->err->num_warnings;
    if (info->err->msg_code != JWRN_JPEG_EOF) return;
    trap_of(info).cut_short = true;
    leave(info);
}

void on_progress(j_common_ptr info) {
    if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMaxScans) return;
    Trap& trap = trap_of(info);
    trap.too_many_scans = true;
    std::longjmp(trap.jump, 1);
}

/// False when libjpeg gave up inside `work`. Nothing that `work` calls may own anything.
template <typename Work>
[[nodiscard]] bool guarded(Trap& trap, Work&& work) {
    if (setjmp(trap.jump) != 0) return false;  // NOLINT(cert-err52-cpp): libjpeg knows no other way
    work();
    return true;
}

class Decompressor {
  public:
    Decompressor() {
        info.err = jpeg_std_error(&trap.manager);
        trap.manager.error_exit = leave;
        trap.manager.emit_message = on_message;
        trap.manager.output_message = [](j_common_ptr) {};
        progress.progress_monitor = on_progress;
        created = guarded(trap, [this] { jpeg_create_decompress(&info); });
        info.progress = &progress;
    }
    ~Decompressor() {
        if (created) jpeg_destroy_decompress(&info);
    }
    Decompressor(const Decompressor&) = delete;
    Decompressor& operator=(const Decompressor&) = delete;

    [[nodiscard]] std::unexpected<host::Error> failed() const {
        if (trap.cut_short)
            return host::failure(ErrorCode::InvalidPicture, "cut short: the data end after row {} of {}",
                                 info.output_scanline, info.image_height);
        if (trap.too_many_scans) return host::failure(ErrorCode::InvalidPicture, "more than {} scans", kMaxScans);
        return host::failure(ErrorCode::InvalidPicture, "{}", trap.message.data());
    }

    Trap trap;
    jpeg_progress_mgr progress{};
    jpeg_decompress_struct info{};
    bool created = false;
};

Orientation orientation_in(const jpeg_decompress_struct& info) {
    static constexpr std::string_view kExif("Exif\0\0", 6);
    for (const jpeg_marker_struct* marker = info.marker_list; marker != nullptr; marker = marker->next) {
        const Bytes data(marker->data, marker->data_length);
        if (marker->marker == JPEG_APP0 + 1 && data.size() >= kExif.size() &&
            std::equal(kExif.begin(), kExif.end(), data.begin()))
            return exif_orientation(data);
    }
    return Orientation::Upright;
}

/// a * b / 255, rounded, without a division; exact for all bytes.
constexpr std::uint8_t scaled(unsigned a, unsigned b) {
    const unsigned t = a * b + 128;
    return static_cast<std::uint8_t>((t + (t >> 8)) >> 8);
}

/// Inverted CMYK, as every program that follows Adobe writes it (Pillow, too, takes all of it so), to RGB.
void cmyk_to_rgb(const std::uint8_t* cmyk, std::uint8_t* rgb, std::uint32_t width) {
    for (std::uint32_t x = 0; x < width; ++x, cmyk += 4, rgb += 3) {
        const unsigned light = cmyk[3];  // 255 less the ink of the black plate
        for (unsigned c = 0; c < 3; ++c) rgb[c] = static_cast<std::uint8_t>(light - scaled(255u - cmyk[c], light));
    }
}

}  // namespace

host::Result<Decoded> decode_jpeg(Bytes file, const Limits& limits) {
    Decompressor jpeg;
    auto& info = jpeg.info;
    if (!jpeg.created) return jpeg.failed();
    const bool header_read = guarded(jpeg.trap, [&] {
        jpeg_mem_src(&info, file.data(), file.size());
        jpeg_save_markers(&info, JPEG_APP0 + 1, 0xFFFF);
        jpeg_read_header(&info, TRUE);
    });
    if (!header_read) return jpeg.failed();
    Decoded out;
    TRY_ASSIGN(out.picture, make_picture(info.image_width, info.image_height, limits));
    out.orientation = orientation_in(info);

    const bool cmyk = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
    info.out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
    std::vector<std::uint8_t> cmyk_row(cmyk ? std::size_t{info.image_width} * 4 : 0);
    Picture& picture = out.picture;
    const bool decoded = guarded(jpeg.trap, [&] {
        jpeg_start_decompress(&info);
        while (info.output_scanline < info.output_height) {
            const std::uint32_t y = info.output_scanline;
            JSAMPROW row = cmyk ? cmyk_row.data() : picture.row(y);
            if (jpeg_read_scanlines(&info, &row, 1) == 1 && cmyk) cmyk_to_rgb(row, picture.row(y), picture.width);
        }
        jpeg_finish_decompress(&info);
    });
    if (!decoded) return jpeg.failed();
    return out;
}

}  // namespace talpa::image
