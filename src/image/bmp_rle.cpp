#include "image/bmp_rle.h"

#include <algorithm>

namespace talpa::image {

std::optional<BmpRlePixel> BmpRleReader::next() {
    for (;;) {
        if (run_ == Run::None) {
            if (y_ >= height_ || !start_run()) return std::nullopt;
            continue;
        }
        if (run_done_ == run_length_ || x_ >= width_) {
            x_ += run_length_ - run_done_;
            run_ = Run::None;
            continue;
        }
        return BmpRlePixel{.x = static_cast<std::uint32_t>(x_++),
                           .y = static_cast<std::uint32_t>(y_),
                           .index = run_index(run_done_++)};
    }
}

std::uint8_t BmpRleReader::run_index(std::uint32_t i) const {
    const bool encoded = run_ == Run::Encoded;
    if (bits_ == 8) return run_bytes_[encoded ? 0 : i];
    const std::uint8_t byte = run_bytes_[encoded ? 0 : i / 2];
    return i % 2 == 0 ? byte >> 4 : byte & 15;
}

/// Reads the next code; false at the end of the data or of the bitmap.
bool BmpRleReader::start_run() {
    if (ended_ || data_.size() < 2) return false;
    const std::uint8_t count = data_[0], value = data_[1];
    if (count == 0) {
        data_ = data_.subspan(2);
        return escape(value);
    }
    run_ = Run::Encoded;
    run_length_ = count;
    run_done_ = 0;
    run_bytes_ = data_.subspan(1, 1);
    data_ = data_.subspan(2);
    return true;
}

bool BmpRleReader::escape(std::uint8_t code) {
    switch (code) {
        case 0:  // end of row
            x_ = 0;
            ++y_;
            return true;
        case 1:  // end of bitmap
            ended_ = true;
            return false;
        case 2:  // go right and on by so many rows
            if (data_.size() < 2) return false;
            x_ += data_[0];
            y_ += data_[1];
            data_ = data_.subspan(2);
            return true;
        default:  // `code` pixels as they are, padded to 16 bits
            break;
    }
    const std::size_t bytes = bits_ == 8 ? code : (code + 1u) / 2;
    if (data_.size() < bytes) return false;
    run_ = Run::Absolute;
    run_length_ = code;
    run_done_ = 0;
    run_bytes_ = data_.first(bytes);
    data_ = data_.subspan(std::min(data_.size(), round_up(bytes, std::size_t{2})));
    return true;
}

}  // namespace talpa::image
