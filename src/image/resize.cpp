#include "image/resize.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/core/checked_math.h"

namespace talpa::image {
namespace {

/// 8 bits of pixel and 2 of headroom leave 22 of 32 for the fraction.
constexpr unsigned kFractionBits = 32 - 8 - 2;

/// Which source pixels make an output pixel, and how much each counts.
struct Taps {
    std::uint64_t first = 0;
    std::uint32_t count = 0;
    std::size_t weights_at = 0;
};

struct Filter {
    std::vector<Taps> taps;             ///< one per output pixel of the window
    std::vector<std::int32_t> weights;  ///< fixed point; those of one output pixel add up to about 1

    [[nodiscard]] const std::int32_t* weights_of(const Taps& t) const { return weights.data() + t.weights_at; }
    /// First source pixel that is used, and one past the last: taps move in one direction only.
    [[nodiscard]] std::uint64_t begin() const { return taps.front().first; }
    [[nodiscard]] std::uint64_t end() const { return taps.back().first + taps.back().count; }
};

/// Filter for outputs [from, from + count) of `in` pixels scaled to `out`. The arithmetic is in double precision, in
/// the order in which Pillow does it, since the rounding of a weight can hang on it.
Filter make_filter(std::uint64_t in, std::uint64_t out, std::uint64_t from, std::uint32_t count) {
    const double scale = static_cast<double>(in) / static_cast<double>(out);
    const double widening = std::max(scale, 1.0);
    const double support = widening;  // the triangle reaches 1 to each side, widened
    const double narrowing = 1.0 / widening;
    Filter filter;
    filter.taps.reserve(count);
    std::vector<double> exact;
    for (std::uint32_t i = 0; i < count; ++i) {
        const double center = (static_cast<double>(from + i) + 0.5) * scale;
        const auto first = static_cast<std::uint64_t>(std::max(center - support + 0.5, 0.0));
        const auto last = std::min(static_cast<std::uint64_t>(center + support + 0.5), in);
        exact.clear();
        double sum = 0;
        for (std::uint64_t x = first; x < last; ++x) {
            const double distance = std::abs((static_cast<double>(x) - center + 0.5) * narrowing);
            exact.push_back(distance < 1.0 ? 1.0 - distance : 0.0);
            sum += exact.back();
        }
        filter.taps.push_back({first, static_cast<std::uint32_t>(exact.size()), filter.weights.size()});
        for (const double weight : exact) {
            const double part = sum == 0 ? weight : weight / sum;
            filter.weights.push_back(static_cast<std::int32_t>(part * (1 << kFractionBits) + 0.5));
        }
    }
    return filter;
}

constexpr std::int32_t kHalf = 1 << (kFractionBits - 1);

std::uint8_t to_byte(std::int32_t sum) {
    return static_cast<std::uint8_t>(std::clamp(sum >> kFractionBits, 0, 255));
}

/// One row of the window from one row of the source.
void filter_row(const std::uint8_t* from, const Filter& filter, std::uint8_t* to) {
    for (const Taps& taps : filter.taps) {
        const std::int32_t* weight = filter.weights_of(taps);
        const std::uint8_t* pixel = from + taps.first * 3;
        std::int32_t red = kHalf, green = kHalf, blue = kHalf;
        for (std::uint32_t i = 0; i < taps.count; ++i, pixel += 3) {
            red += pixel[0] * weight[i];
            green += pixel[1] * weight[i];
            blue += pixel[2] * weight[i];
        }
        to[0] = to_byte(red), to[1] = to_byte(green), to[2] = to_byte(blue);
        to += 3;
    }
}

/// One row of the result from rows of the intermediate picture, whose row 0 is source row `first_row`.
void filter_columns(const std::vector<std::uint8_t>& rows, std::size_t row_bytes, std::uint64_t first_row,
                    const Taps& taps, const std::int32_t* weights, std::vector<std::int32_t>& sums, std::uint8_t* to) {
    std::fill(sums.begin(), sums.end(), kHalf);
    for (std::uint32_t i = 0; i < taps.count; ++i) {
        const std::uint8_t* row = rows.data() + (taps.first + i - first_row) * row_bytes;
        const std::int32_t weight = weights[i];
        for (std::size_t x = 0; x < row_bytes; ++x) sums[x] += row[x] * weight;
    }
    for (std::size_t x = 0; x < row_bytes; ++x) to[x] = to_byte(sums[x]);
}

}  // namespace

host::Result<Picture> resize_bilinear(const Picture& picture, ScaledSize size, Window window) {
    if (window.width == 0 || window.height == 0 || !range_inside(window.x, window.width, size.width) ||
        !range_inside(window.y, window.height, size.height))
        return host::failure(ErrorCode::InvalidArgument, "window of {} x {} at ({}, {}) is not inside {} x {}",
                             window.width, window.height, window.x, window.y, size.width, size.height);
    const Filter across = make_filter(picture.width, size.width, window.x, window.width);
    const Filter down = make_filter(picture.height, size.height, window.y, window.height);

    const std::uint64_t first_row = down.begin(), rows = down.end() - first_row;
    const std::size_t row_bytes = std::size_t{window.width} * 3;
    std::vector<std::uint8_t> narrowed(rows * row_bytes);
    for (std::uint64_t y = 0; y < rows; ++y)
        filter_row(picture.row(static_cast<std::uint32_t>(first_row + y)), across, narrowed.data() + y * row_bytes);

    Picture out{
        .width = window.width, .height = window.height, .rgb = std::vector<std::uint8_t>(window.height * row_bytes)};
    std::vector<std::int32_t> sums(row_bytes);
    for (std::uint32_t y = 0; y < window.height; ++y)
        filter_columns(narrowed, row_bytes, first_row, down.taps[y], down.weights_of(down.taps[y]), sums, out.row(y));
    return out;
}

host::Result<Picture> resize_bilinear(const Picture& picture, std::uint32_t width, std::uint32_t height) {
    return resize_bilinear(picture, {width, height}, {0, 0, width, height});
}

}  // namespace talpa::image
