// The run-length codes of BMP (BI_RLE8, BI_RLE4) as a sequence of pixels.
#pragma once

#include <cstdint>
#include <optional>

#include "base/core/byte_reader.h"

namespace talpa::image {

/// One pixel in the order of the file: y counts rows as stored, `index` is that of the palette.
struct BmpRlePixel {
    std::uint32_t x = 0, y = 0;
    std::uint8_t index = 0;
};

/// Yields every pixel that the data set, all inside width x height; what runs over the end of a row is dropped, as
/// other readers do. `bits`: 8 or 4.
class BmpRleReader {
  public:
    BmpRleReader(Bytes data, unsigned bits, std::uint32_t width, std::uint32_t height)
        : data_(data), bits_(bits), width_(width), height_(height) {}

    [[nodiscard]] std::optional<BmpRlePixel> next();
    /// After `next` returned nothing: did the data say so (end-of-bitmap mark, or the last row was full)?
    [[nodiscard]] bool complete() const { return ended_ || y_ >= height_ || (y_ + 1 == height_ && x_ >= width_); }
    [[nodiscard]] std::uint64_t row() const { return y_; }

  private:
    enum class Run : std::uint8_t { None, Encoded, Absolute };

    [[nodiscard]] bool start_run();
    [[nodiscard]] bool escape(std::uint8_t code);
    [[nodiscard]] std::uint8_t run_index(std::uint32_t i) const;

    Bytes data_;
    unsigned bits_;
    std::uint64_t width_, height_;
    std::uint64_t x_ = 0, y_ = 0;
    bool ended_ = false;
    Run run_ = Run::None;
    std::uint32_t run_length_ = 0, run_done_ = 0;
    Bytes run_bytes_;  // one byte of an encoded run, or the bytes of an absolute one
};

}  // namespace talpa::image
