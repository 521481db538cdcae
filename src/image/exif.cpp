#include "image/exif.h"

#include <algorithm>
#include <array>
#include <optional>

namespace talpa::image {
namespace {

constexpr std::uint16_t kTagOrientation = 0x0112;
constexpr std::uint16_t kTypeShort = 3, kTypeLong = 4;
constexpr std::size_t kEntryBytes = 12;

/// Reads in the byte order that the structure declares; nothing outside the bytes.
class TiffReader {
  public:
    TiffReader(Bytes bytes, bool big_endian) : bytes_(bytes), big_endian_(big_endian) {}

    [[nodiscard]] std::optional<std::uint32_t> number(std::uint64_t offset, unsigned size) const {
        if (!range_inside(offset, size, bytes_.size())) return std::nullopt;
        std::uint32_t value = 0;
        for (unsigned i = 0; i < size; ++i) {
            const std::uint8_t byte = bytes_[offset + (big_endian_ ? i : size - 1 - i)];
            value = value << 8 | byte;
        }
        return value;
    }

  private:
    Bytes bytes_;
    bool big_endian_;
};

}  // namespace

Orientation exif_orientation(Bytes tiff) {
    static constexpr std::array<std::uint8_t, 6> kPrefix = {'E', 'x', 'i', 'f', 0, 0};
    if (tiff.size() >= kPrefix.size() && std::ranges::equal(tiff.first(kPrefix.size()), kPrefix))
        tiff = tiff.subspan(kPrefix.size());
    if (tiff.size() < 8 || tiff[0] != tiff[1] || (tiff[0] != 'I' && tiff[0] != 'M')) return Orientation::Upright;
    const TiffReader reader(tiff, tiff[0] == 'M');
    if (reader.number(2, 2) != 42u) return Orientation::Upright;
    const std::uint64_t ifd = *reader.number(4, 4);
    const std::uint32_t entries = reader.number(ifd, 2).value_or(0);
    for (std::uint32_t i = 0; i < entries; ++i) {
        const std::uint64_t entry = ifd + 2 + i * kEntryBytes;
        const auto tag = reader.number(entry, 2);
        if (!tag) break;
        if (*tag != kTagOrientation) continue;
        const auto type = reader.number(entry + 2, 2);
        if (type != kTypeShort && type != kTypeLong) break;
        if (reader.number(entry + 4, 4).value_or(0) == 0) break;
        // A short stands in the first two of the value's four bytes, in either byte order.
        const std::uint32_t value = reader.number(entry + 8, type == kTypeShort ? 2 : 4).value_or(1);
        if (value >= 1 && value <= 8) return static_cast<Orientation>(value);
        break;
    }
    return Orientation::Upright;
}

}  // namespace talpa::image
