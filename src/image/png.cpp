// PNG by libpng. As with libjpeg, its errors leave by longjmp: every call happens inside `guarded`, whose callables own
// nothing. All kinds are brought to 8-bit RGB by libpng's own transformations.
#include <png.h>

#include <array>
#include <csetjmp>
#include <cstring>

#include "image/formats.h"

namespace talpa::image {
namespace {

struct Trap {
    std::jmp_buf jump{};
    std::array<char, 160> message{};
};

/// Where libpng reads from.
struct Source {
    Bytes rest;
};

[[noreturn]] void on_error(png_structp png, png_const_charp message) {
    Trap& trap = *static_cast<Trap*>(png_get_error_ptr(png));
    std::strncpy(trap.message.data(), message, trap.message.size() - 1);
    std::longjmp(trap.jump, 1);
}

void on_read(png_structp png, png_bytep to, std::size_t size) {
    Source& source = *static_cast<Source*>(png_get_io_ptr(png));
    if (size > source.rest.size()) png_error(png, "cut short: the data end too early");
    std::memcpy(to, source.rest.data(), size);
    source.rest = source.rest.subspan(size);
}

template <typename Work>
[[nodiscard]] bool guarded(Trap& trap, Work&& work) {
    if (setjmp(trap.jump) != 0) return false;  // NOLINT(cert-err52-cpp): libpng knows no other way
    work();
    return true;
}

class Reader {
  public:
    explicit Reader(Bytes file) : source{file} {
        png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &trap, on_error, [](png_structp, png_const_charp) {});
        if (png != nullptr) info = png_create_info_struct(png);
    }
    ~Reader() { png_destroy_read_struct(&png, &info, nullptr); }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    [[nodiscard]] std::unexpected<host::Error> failed() const {
        return host::failure(ErrorCode::InvalidPicture, "{}", trap.message.data());
    }

    Trap trap;
    Source source;
    png_structp png = nullptr;
    png_infop info = nullptr;
};

/// Asks libpng for 8-bit RGB rows whatever the file holds. Inside `guarded`.
void ask_for_rgb(png_structp png, png_infop info) {
    const int color = png_get_color_type(png, info), depth = png_get_bit_depth(png, info);
    if (depth == 16) png_set_strip_16(png);
    if (color == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
    if (color == PNG_COLOR_TYPE_GRAY && depth < 8) png_set_expand_gray_1_2_4_to_8(png);
    if ((color & PNG_COLOR_MASK_COLOR) == 0) png_set_gray_to_rgb(png);
    png_set_strip_alpha(png);
}

Orientation orientation_in(Reader& reader) {
    png_uint_32 size = 0;
    png_bytep exif = nullptr;
    const bool ok = guarded(reader.trap, [&] {
        if (png_get_eXIf_1(reader.png, reader.info, &size, &exif) == 0) exif = nullptr;
    });
    return ok && exif != nullptr ? exif_orientation(Bytes(exif, size)) : Orientation::Upright;
}

}  // namespace

host::Result<Decoded> decode_png(Bytes file, const Limits& limits) {
    Reader reader(file);
    if (reader.png == nullptr || reader.info == nullptr)
        return host::failure(ErrorCode::OutOfResources, "no memory for libpng");
    png_structp png = reader.png;
    png_infop info = reader.info;
    const bool header_read = guarded(reader.trap, [&] {
        png_set_read_fn(png, &reader.source, on_read);
        // Sides are ours to judge (make_picture); ancillary chunks may hold 8 MB each and no more than 100 of them
        // count.
        png_set_user_limits(png, 0x7FFFFFFF, 0x7FFFFFFF);
        png_set_chunk_malloc_max(png, 8'000'000);
        png_set_chunk_cache_max(png, 100);
        png_read_info(png, info);
    });
    if (!header_read) return reader.failed();
    Decoded out;
    TRY_ASSIGN(out.picture, make_picture(png_get_image_width(png, info), png_get_image_height(png, info), limits));
    Picture& picture = out.picture;
    std::size_t row_bytes = 0;
    const bool decoded = guarded(reader.trap, [&] {
        ask_for_rgb(png, info);
        const int passes = png_set_interlace_handling(png);
        png_read_update_info(png, info);
        row_bytes = png_get_rowbytes(png, info);
        if (row_bytes != std::size_t{picture.width} * 3) png_error(png, "unexpected row size");
        for (int pass = 0; pass < passes; ++pass)
            for (std::uint32_t y = 0; y < picture.height; ++y) png_read_row(png, picture.row(y), nullptr);
        png_read_end(png, info);
    });
    if (!decoded) return reader.failed();
    out.orientation = orientation_in(reader);  // after the pixels, since eXIf may follow them
    return out;
}

}  // namespace talpa::image
