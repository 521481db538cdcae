#include "npu_model/fast/image.h"

#include <algorithm>
#include <cstring>

#include "base/core/checked_math.h"
#include "npu_model/fast/memory_span.h"

namespace talpa::npu_model::fast {
namespace {

// `count` elements that lie together, as they are or widened to 16 bits.
void copy_elements(const std::uint8_t* from, npu::ElementType type, std::size_t count, std::uint8_t bytes,
                   std::uint8_t* to) {
    if (type.bytes == bytes) {
        std::memcpy(to, from, count * bytes);
    } else if (type.is_signed) {
        const auto* in = reinterpret_cast<const std::int8_t*>(from);
        auto* out = reinterpret_cast<std::int16_t*>(to);
        for (std::size_t i = 0; i < count; ++i) out[i] = in[i];
    } else {
        auto* out = reinterpret_cast<std::int16_t*>(to);
        for (std::size_t i = 0; i < count; ++i) out[i] = from[i];
    }
}

void fill(std::int32_t value, std::size_t count, std::uint8_t bytes, std::uint8_t* to) {
    if (bytes == 1) {
        std::memset(to, value & 0xFF, count);
    } else {
        auto* out = reinterpret_cast<std::int16_t*>(to);
        std::fill(out, out + count, static_cast<std::int16_t>(value));
    }
}

// Where a row or column of the padded, upscaled grid comes from.
struct GridLine {
    bool stored = false;  // else padding or an inserted zero
    std::uint32_t index = 0;
};

GridLine grid_line(std::uint32_t at, std::uint32_t pad, std::uint32_t stored_count, npu::Upscale upscale,
                   std::uint32_t needed) {
    if (at < pad || at - pad >= needed) return {};
    const std::uint32_t i = at - pad;
    if (upscale == npu::Upscale::None) return {i < stored_count, i};
    if (upscale == npu::Upscale::Zeros && i % 2 != 0) return {};
    return {i / 2 < stored_count, i / 2};
}

struct Grid {
    std::uint32_t height, width;  // padded
    std::uint32_t inner_height, inner_width;

    explicit Grid(const npu::Operation& op)
        : height((op.ofm.height - 1) * op.kernel.stride_y + op.kernel.dilated_height()),
          width((op.ofm.width - 1) * op.kernel.stride_x + op.kernel.dilated_width()),
          inner_height(height - op.padding.top - op.padding.bottom),
          inner_width(width - op.padding.left - op.padding.right) {}
};

// Channels c0.. of all columns of a grid row that is stored, to pixels `pitch` bytes apart.
void copy_columns(const npu::Operation& op, const std::uint8_t* memory, const Grid& grid, std::uint32_t y,
                  std::uint32_t c0, std::uint32_t channels, std::uint8_t bytes, std::ptrdiff_t pitch,
                  std::int32_t filler, std::uint8_t* out) {
    const npu::FeatureMap& fm = op.ifm;
    const std::uint32_t left = std::min(op.padding.left, grid.width), right_from = left + grid.inner_width;
    const auto pad = [&](std::uint32_t from, std::uint32_t to) {
        for (std::uint32_t x = from; x < to; ++x) fill(filler, channels, bytes, out + x * pitch);
    };
    pad(0, left);
    pad(right_from, grid.width);
    if (op.upscale == npu::Upscale::None && has_linear_rows(fm)) {
        const std::uint8_t* from = memory + fm.offset_of(y, 0, c0);
        const std::ptrdiff_t step = pixel_stride(fm);
        std::uint8_t* to = out + left * pitch;
        const std::size_t run = std::size_t{channels} * fm.type.bytes;
        if (step == static_cast<std::ptrdiff_t>(run) &&
            pitch == static_cast<std::ptrdiff_t>(std::size_t{channels} * bytes)) {
            copy_elements(from, fm.type, std::size_t{grid.inner_width} * channels, bytes, to);
        } else {
            for (std::uint32_t x = 0; x < grid.inner_width; ++x, from += step, to += pitch)
                copy_elements(from, fm.type, channels, bytes, to);
        }
        return;
    }
    for (std::uint32_t x = left; x < right_from; ++x) {
        const GridLine column = grid_line(x, left, fm.width, op.upscale, grid.inner_width);
        if (column.stored)
            copy_elements(memory + fm.offset_of(y, column.index, c0), fm.type, channels, bytes, out + x * pitch);
        else
            fill(filler, channels, bytes, out + x * pitch);
    }
}

}  // namespace

std::size_t ImageShape::size_bytes() const {
    const std::size_t channels = layout == npu::Layout::Nhwc ? depth : round_up(depth, 16u);
    return std::size_t{height} * width * channels * bytes + 128;
}

ImageShape copied_image(const npu::Operation& op, std::uint8_t bytes) {
    const Grid grid(op);
    ImageShape s{grid.height, grid.width, op.ifm.depth, op.ifm.layout, bytes, 0, 0, 0};
    if (s.layout == npu::Layout::Nhwc) {
        s.pixel = static_cast<std::ptrdiff_t>(std::size_t{s.depth} * bytes);
        s.row = s.pixel * s.width;
        s.block = std::ptrdiff_t{16} * bytes;
    } else {
        s.pixel = std::ptrdiff_t{16} * bytes;
        s.block = s.pixel * s.width;
        s.row = s.block * ((s.depth + 15) / 16);
    }
    return s;
}

bool can_be_direct(const npu::Operation& op) {
    return !op.padding.any() && op.upscale == npu::Upscale::None && is_single_tile(op.ifm);
}

ImageShape direct_image(const npu::Operation& op) {
    return {op.ifm.height,        op.ifm.width,        op.ifm.depth,
            op.ifm.layout,        op.ifm.type.bytes,   static_cast<std::ptrdiff_t>(op.ifm.stride_y),
            pixel_stride(op.ifm), block_stride(op.ifm)};
}

void copy_image(const Context& context, const ImageShape& shape, std::uint8_t* out) {
    const npu::Operation& op = context.op;
    const std::uint8_t* memory = context.memory(op.ifm);
    const Grid grid(op);
    const auto copy_row = [&](std::uint32_t y) {
        std::uint8_t* row = out + y * shape.row;
        const GridLine line = grid_line(y, op.padding.top, op.ifm.height, op.upscale, grid.inner_height);
        if (!line.stored) {
            const std::size_t channels = shape.layout == npu::Layout::Nhwc ? shape.depth : round_up(shape.depth, 16u);
            fill(op.ifm.zero_point, channels * shape.width, shape.bytes, row);
        } else if (shape.layout == npu::Layout::Nhwc) {
            copy_columns(op, memory, grid, line.index, 0, shape.depth, shape.bytes, shape.pixel, op.ifm.zero_point,
                         row);
        } else {
            // Whole bricks: the padding channels meet weights of zero.
            for (std::uint32_t c = 0; c < shape.depth; c += 16)
                copy_columns(op, memory, grid, line.index, c, 16, shape.bytes, shape.pixel, op.ifm.zero_point,
                             row + (c / 16) * shape.block);
        }
    };
    const bool large = shape.size_bytes() > 32768;
    if (!large) {
        for (std::uint32_t y = 0; y < shape.height; ++y) copy_row(y);
        return;
    }
    const std::uint32_t chunk = std::max(1u, shape.height / (4 * context.pool.threads()));
    context.pool.run((shape.height + chunk - 1) / chunk, [&](std::uint32_t i) {
        for (std::uint32_t y = i * chunk; y < std::min(shape.height, (i + 1) * chunk); ++y) copy_row(y);
    });
}

void copy_line(const Context& context, const ImageShape& shape, std::uint32_t y, std::uint32_t c0, std::int32_t filler,
               std::uint8_t* out) {
    const npu::Operation& op = context.op;
    const Grid grid(op);
    const GridLine line = grid_line(y, op.padding.top, op.ifm.height, op.upscale, grid.inner_height);
    const std::ptrdiff_t pitch = std::ptrdiff_t{16} * shape.bytes;
    if (!line.stored) {
        fill(filler, std::size_t{16} * shape.width, shape.bytes, out);
        return;
    }
    const std::uint32_t channels = shape.layout == npu::Layout::Nhcwb16 ? 16 : std::min(16u, shape.depth - c0);
    copy_columns(op, context.memory(op.ifm), grid, line.index, c0, channels, shape.bytes, pitch, filler, out);
}

}  // namespace talpa::npu_model::fast
