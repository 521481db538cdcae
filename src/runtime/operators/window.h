// The arguments that pools and convolutions share: kernel, stride, padding and dilation of up to two dimensions, and
// the size of what comes out. Freestanding.
#pragma once

#include "runtime/operators/call.h"

namespace talpa::runtime::operators {

/// Two numbers from a list of one (both) or two; `empty` is what an empty list stands for, if it may be empty.
struct Pair {
    std::int64_t y = 0, x = 0;
};
[[nodiscard]] Result<Pair> pair(const Arguments& args, std::size_t arg, std::int64_t at_least,
                                const Pair* empty = nullptr);

/// Along one dimension.
struct Window {
    std::int64_t kernel = 1, stride = 1, padding = 0, dilation = 1;
};
/// Places of the window; `ceil` lets the last one start inside the input or its leading padding and end outside.
/// Negative when the window does not fit at all.
[[nodiscard]] std::int64_t window_count(std::int64_t size, const Window& w, bool ceil);

/// The planes of a [C, H, W] or [N, C, H, W] tensor.
struct Planes {
    std::int64_t batches = 1, channels = 0, height = 0, width = 0;
    std::int64_t batch_step = 0, channel_step = 0, y_step = 0, x_step = 0;  ///< bytes
};
[[nodiscard]] Result<Planes> planes(const Arguments& args, std::size_t arg, const Tensor& t);
[[nodiscard]] Result<Shape> with_plane_size(const Arguments& args, const Tensor& t, std::int64_t height,
                                            std::int64_t width);

}  // namespace talpa::runtime::operators
