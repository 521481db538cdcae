#include "webapp/picture_png.h"

#include <png.h>

#include <cstdint>

namespace talpa::webapp {

std::string png_of(const image::Picture& picture) {
    png_image png{};
    png.version = PNG_IMAGE_VERSION;
    png.width = picture.width;
    png.height = picture.height;
    png.format = PNG_FORMAT_RGB;
    png.flags = PNG_IMAGE_FLAG_FAST;
    std::string file(PNG_IMAGE_PNG_SIZE_MAX(png), '\0');
    png_alloc_size_t size = file.size();
    if (png_image_write_to_memory(&png, file.data(), &size, 0, picture.rgb.data(), 0, nullptr) == 0) return {};
    file.resize(size);
    return file;
}

std::string base64(std::string_view bytes) {
    static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    out.reserve((bytes.size() + 2) / 3 * 4);
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        std::uint32_t word = 0;
        for (std::size_t j = 0; j < 3; ++j)
            word = word << 8 | (i + j < bytes.size() ? static_cast<std::uint8_t>(bytes[i + j]) : 0u);
        for (std::size_t j = 0; j < 4; ++j) out += i + j > bytes.size() ? '=' : kDigits[(word >> (18 - 6 * j)) & 63];
    }
    return out;
}

}  // namespace talpa::webapp
