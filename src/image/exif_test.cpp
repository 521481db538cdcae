#include "image/exif.h"

#include <gtest/gtest.h>

#include <vector>

namespace talpa::image {
namespace {

// A TIFF structure with one IFD of one entry, as TIFF 6.0 lays it out.
std::vector<std::uint8_t> tiff(bool big_endian, std::uint16_t orientation, std::uint16_t type = 3) {
    const auto half = [&](std::uint16_t v) {
        return big_endian ? std::vector<std::uint8_t>{std::uint8_t(v >> 8), std::uint8_t(v)}
                          : std::vector<std::uint8_t>{std::uint8_t(v), std::uint8_t(v >> 8)};
    };
    std::vector<std::uint8_t> out(2, big_endian ? 'M' : 'I');
    const auto put = [&](std::uint16_t v) {
        for (std::uint8_t b : half(v)) out.push_back(b);
    };
    const auto put_word = [&](std::uint16_t v) {
        if (big_endian) put(0);
        put(v);
        if (!big_endian) put(0);
    };
    put(42), put_word(8);                         // magic, offset of IFD 0
    put(1), put(0x0112), put(type), put_word(1);  // one entry: tag, type, count
    if (type == 3)
        put(orientation), put(0);
    else
        put_word(orientation);
    put_word(0);  // no next IFD
    return out;
}

TEST(Exif, EachOrientationIsReadInBothByteOrders) {
    for (const bool big_endian : {false, true})
        for (std::uint16_t o = 1; o <= 8; ++o) {
            EXPECT_EQ(exif_orientation(tiff(big_endian, o)), static_cast<Orientation>(o));
            EXPECT_EQ(exif_orientation(tiff(big_endian, o, 4)), static_cast<Orientation>(o)) << "as a long";
        }
}

TEST(Exif, APrefixIsSkipped) {
    std::vector<std::uint8_t> data{'E', 'x', 'i', 'f', 0, 0};
    const auto body = tiff(true, 6);
    data.insert(data.end(), body.begin(), body.end());
    EXPECT_EQ(exif_orientation(data), Orientation::RotateClockwise);
}

TEST(Exif, ValuesOutsideTheTableMeanUpright) {
    for (const std::uint16_t o : {0, 9, 255, 65535}) EXPECT_EQ(exif_orientation(tiff(false, o)), Orientation::Upright);
    EXPECT_EQ(exif_orientation(tiff(false, 6, 2)), Orientation::Upright) << "a text is no orientation";
}

TEST(Exif, DataCutAnywhereMeanUprightAndNothingWorse) {
    const auto whole = tiff(false, 6);
    // The value's two bytes end at 20; everything shorter has no orientation.
    for (std::size_t size = 0; size < whole.size(); ++size) {
        const std::vector<std::uint8_t> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
        EXPECT_EQ(exif_orientation(cut), size < 20 ? Orientation::Upright : Orientation::RotateClockwise) << size;
    }
}

TEST(Exif, OffsetsAndCountsBeyondTheDataAreHarmless) {
    auto data = tiff(false, 6);
    data[4] = 0xFF, data[5] = 0xFF, data[6] = 0xFF, data[7] = 0xFF;  // IFD at 4 GiB
    EXPECT_EQ(exif_orientation(data), Orientation::Upright);
    data = tiff(false, 6);
    data[10] = 0x13;                 // another tag
    data[8] = 0xFF, data[9] = 0xFF;  // 65,535 entries
    EXPECT_EQ(exif_orientation(data), Orientation::Upright);
}

}  // namespace
}  // namespace talpa::image
