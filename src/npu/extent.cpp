#include "npu/extent.h"

#include <bit>

#include "base/core/error.h"

namespace talpa::npu {

namespace {

// Far beyond any 40-bit address, far from the ends of int64: sums of a few of these do not overflow.
constexpr std::int64_t kFar = std::int64_t{1} << 60;

std::int64_t clamped(std::int64_t v) {
    return v > kFar ? kFar : v < -kFar ? -kFar : v;
}

int width(std::int64_t v) {
    return std::bit_width(v < 0 ? 0 - static_cast<std::uint64_t>(v) : static_cast<std::uint64_t>(v));
}

// A product of n and m bits is at least 2^(n+m-2), which is kFar from 62 bits on, and below 2^(n+m). Not inline, and
// without __builtin_mul_overflow: on the M33 each copy of that would be two hundred bytes.
[[gnu::noinline]] std::int64_t saturating_mul(std::int64_t a, std::int64_t b) {
    if (a != 0 && b != 0 && width(a) + width(b) >= 62) return (a < 0) != (b < 0) ? -kFar : kFar;
    return clamped(a * b);
}

}  // namespace

const char* operand_name(Operand operand) {
    static constexpr const char* kNames[] = {
        "IFM", "IFM2", "OFM", "weights", "scales", TALPA_SENTENCE("DMA source"), TALPA_SENTENCE("DMA destination"),
        "LUT"};
    return kNames[static_cast<std::size_t>(operand)];
}

Extent Box::hull() const {
    if (empty()) return {};
    std::int64_t low = begin, high = begin;
    for (std::size_t d = 0; d < 3; ++d) {
        const std::int64_t reach = saturating_mul(count[d] - 1, stride[d]);
        if (reach < 0)
            low = clamped(low + reach);
        else
            high = clamped(high + reach);
    }
    return {low, clamped(high + clamped(run) + padding)};
}

Box Box::merged() const {
    Box r = *this;
    r.padding = 0;
    if (empty()) return r;
    // Count negative strides from the other end, so that a run can grow over them.
    for (std::size_t d = 0; d < 3; ++d) {
        if (r.count[d] == 1) r.stride[d] = 0;
        if (r.stride[d] < 0) {
            r.begin = clamped(r.begin + saturating_mul(r.count[d] - 1, r.stride[d]));
            r.stride[d] = -r.stride[d];
        }
    }
    // A dimension whose step is at most the run's length makes the run longer (or repeats bytes of it).
    for (bool grew = true; grew;) {
        grew = false;
        for (std::size_t d = 0; d < 3; ++d) {
            if (r.count[d] == 1 || r.stride[d] > r.run) continue;
            r.run = clamped(r.run + saturating_mul(r.count[d] - 1, r.stride[d]));
            r.count[d] = 1;
            r.stride[d] = 0;
            grew = true;
        }
    }
    return r;
}

std::int64_t Box::runs() const {
    if (empty()) return 0;
    return saturating_mul(saturating_mul(count[0], count[1]), count[2]);
}

FeatureMapBoxes boxes_of(const FeatureMap& fm) {
    return boxes_of(fm, {0, fm.height, 0, fm.width, 0, fm.depth});
}

FeatureMapBoxes boxes_of(const FeatureMap& fm, const Volume& part) {
    FeatureMapBoxes result;
    const std::int64_t es = fm.type.bytes;
    const auto add = [&](std::int64_t begin, std::int64_t run, std::int64_t padding, std::array<std::int64_t, 3> count,
                         std::array<std::int64_t, 3> stride) {
        Box box;
        box.begin = begin;
        box.run = run;
        box.padding = padding;
        box.count = count;
        box.stride = stride;
        if (!box.empty()) result.boxes[result.count++] = box;
    };
    // Channels of the part that lie in bricks [b0, b1): all of a brick's sixteen, or from..to of one.
    const auto bricks = [&](std::int64_t start, std::int64_t h, std::int64_t w, std::int64_t b0, std::int64_t b1,
                            std::int64_t from, std::int64_t to) {
        add(start + b0 * fm.stride_c + from * es, (to - from) * es, (16 - to) * es, {w, b1 - b0, h},
            {16 * es, fm.stride_c, fm.stride_y});
    };
    // One tile: rows [y0, y1) and columns [x0, x1) in its own coordinates.
    const auto tile = [&](std::size_t index, std::int64_t y0, std::int64_t y1, std::int64_t x0, std::int64_t x1) {
        if (y1 <= y0 || x1 <= x0) return;
        const std::int64_t h = y1 - y0, w = x1 - x0;
        const std::int64_t row = static_cast<std::int64_t>(fm.base[index]) + y0 * fm.stride_y;
        if (fm.layout == Layout::Nhwc) {
            add(row + x0 * fm.stride_x + part.c0 * es, (std::int64_t{part.c1} - part.c0) * es, 0, {w, h, 1},
                {fm.stride_x, fm.stride_y, 0});
            return;
        }
        const std::int64_t start = row + x0 * 16 * es;
        if (part.c1 <= part.c0) return;
        const std::int64_t first = part.c0 / 16, last = (part.c1 - 1) / 16;
        const std::int64_t from = part.c0 % 16, to = part.c1 - last * 16;
        if (first == last) {
            bricks(start, h, w, first, last + 1, from, to);
            return;
        }
        if (from != 0) bricks(start, h, w, first, first + 1, from, 16);
        bricks(start, h, w, from != 0 ? first + 1 : first, to == 16 ? last + 1 : last, 0, 16);
        if (to != 16) bricks(start, h, w, last, last + 1, 0, to);
    };
    const auto below = [](std::uint32_t v, std::uint32_t limit) { return v < limit ? v : limit; };
    const auto above = [](std::uint32_t v, std::uint32_t start) { return v > start ? v - start : 0; };
    const std::uint32_t left1 = below(part.x1, fm.width0);
    tile(0, below(part.y0, fm.height0), below(part.y1, fm.height0), part.x0, left1);
    tile(2, above(part.y0, fm.height0), above(part.y1, fm.height0), part.x0, left1);
    const std::uint32_t right0 = above(part.x0, fm.width0), right1 = above(part.x1, fm.width0);
    tile(1, below(part.y0, fm.height1), below(part.y1, fm.height1), right0, right1);
    tile(3, above(part.y0, fm.height1), above(part.y1, fm.height1), right0, right1);
    return result;
}

Extent hull(const FeatureMap& fm) {
    const FeatureMapBoxes found = boxes_of(fm);
    Extent all;
    for (unsigned i = 0; i < found.count; ++i) all = all.joined(found.boxes[i].hull());
    return all;
}

namespace {

Box dma_box(const Dma& dma, std::uint64_t address, unsigned mode) {
    const unsigned dimensions = dma.dimensions();
    const auto length = static_cast<std::int64_t>(dma.length);
    const std::int64_t rows = dimensions >= 1 ? dma.size0 : 1, planes = dimensions >= 2 ? dma.size1 : 1;
    Box box;
    box.begin = static_cast<std::int64_t>(address);
    box.run = length;
    if (mode == 0) {
        box.run = saturating_mul(saturating_mul(length, rows), planes);
        return box;
    }
    // A strided side may have fewer dimensions than the other: its planes then follow as further rows.
    box.count = {mode == 1 ? saturating_mul(rows, planes) : rows, mode == 1 ? 1 : planes, 1};
    box.stride = {length + dma.skip0, clamped(saturating_mul(length, rows) + dma.skip1), 0};
    return box;
}

}  // namespace

Box source_box(const Dma& dma) {
    return dma_box(dma, dma.src, dma.src_stride_mode);
}
Box destination_box(const Dma& dma) {
    return dma_box(dma, dma.dst, dma.dst_stride_mode);
}

std::int64_t lut_bytes(const Operation& op) {
    switch (op.ofm.type.bytes) {
        case 1:
            return kLutSlotBytes;
        case 4:
            return 4 * kLutSlotBytes;
        default:
            return (op.ifm.type.bytes == 1 ? 2 : 8) * kLutSlotBytes;
    }
}

}  // namespace talpa::npu
