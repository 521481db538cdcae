// Strides that the hardware does not have. Within one row of the result the stride in height does not matter, so each
// row is an operation of its own; columns alike. (ethos-u65, section 9.2)
#include <fmt/format.h>

#include <algorithm>

#include "compiler/lower/lowerer.h"

namespace talpa::compiler {

std::int64_t window_operations(Pair stride, std::int64_t height, std::int64_t width) {
    return (stride[0] > kMostStride ? height : 1) * (stride[1] > kMostStride ? width : 1);
}

std::optional<std::string> strides_obstacle(Pair stride, std::int64_t operations) {
    constexpr std::int64_t kMostOperations = 512;
    if (operations <= kMostOperations) return std::nullopt;
    return fmt::format(
        "its stride is {} x {}: above {} the NPU needs an operation for each row or position of the result, here {}, "
        "at "
        "most {} are made (a pool or convolution of stride {} before it does the same in few)",
        stride[0], stride[1], kMostStride, operations, kMostOperations, kMostStride);
}

void Lowerer::add_windows(const Step& step, Pair stride) {
    // Where there is one row or column only, no stride is needed.
    if (step.ofm.height == 1) stride[0] = 1;
    if (step.ofm.width == 1) stride[1] = 1;
    const bool by_row = stride[0] > kMostStride, by_column = stride[1] > kMostStride;
    const npu::Kernel& k = step.op.kernel;
    // One window's part of a dimension: where it begins, how much of it there is, what of the padding is before it.
    struct Cut {
        std::int64_t first = 0, count = 0, before = 0;
    };
    const auto cut = [](std::int64_t index, std::int64_t step_size, std::int64_t kernel, std::int64_t before,
                        std::int64_t size) {
        const std::int64_t from = index * step_size - before, to = std::min(from + kernel, size);
        const std::int64_t first = std::clamp<std::int64_t>(from, 0, size - 1);
        return Cut{first, std::max<std::int64_t>(1, to - first), std::max<std::int64_t>(0, -from)};
    };
    for (std::uint32_t y = 0; y < (by_row ? step.ofm.height : 1); ++y)
        for (std::uint32_t x = 0; x < (by_column ? step.ofm.width : 1); ++x) {
            Step part = step;
            part.op.kernel.stride_y = static_cast<std::uint8_t>(by_row ? 1 : stride[0]);
            part.op.kernel.stride_x = static_cast<std::uint8_t>(by_column ? 1 : stride[1]);
            if (by_row) {
                const Cut c = cut(y, stride[0], k.dilated_height(), step.op.padding.top, step.ifm.height);
                part.ifm.offset += c.first * step.ifm.stride_y;
                part.ifm.height = static_cast<std::uint32_t>(c.count);
                part.op.padding.top = static_cast<std::uint32_t>(c.before);
                part.op.padding.bottom = 0;
                part.ofm.offset += y * step.ofm.stride_y;
                part.ofm.height = 1;
            }
            if (by_column) {
                const Cut c = cut(x, stride[1], k.dilated_width(), step.op.padding.left, step.ifm.width);
                part.ifm.offset += c.first * step.ifm.stride_x;
                part.ifm.width = static_cast<std::uint32_t>(c.count);
                part.op.padding.left = static_cast<std::uint32_t>(c.before);
                part.op.padding.right = 0;
                part.ofm.offset += x * step.ofm.stride_x;
                part.ofm.width = 1;
            }
            // An average of windows that are all full needs its divisor (section 5.5); add_step sees to the others.
            if (part.op.kind == npu::OpKind::AvgPool && step.op.padding.any() && !part.op.padding.any()) {
                const bool full = part.ifm.height >= k.height && part.ifm.width >= k.width;
                if (full) part.op.ofm_scale = average_scale(k.height * k.width);
            }
            add_step(std::move(part));
        }
}

}  // namespace talpa::compiler
