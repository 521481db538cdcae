// Where a kernel window falls on the stored IFM (ethos-u65, section 4.2): padding, stride, dilation and the upscaled
// grid.
#pragma once

#include <cstdint>
#include <vector>

#include "npu/operation.h"

namespace talpa::npu_model {

enum class TapKind : std::uint8_t {
    Stored,    ///< an element of the IFM
    Inserted,  ///< a zero (the zero point) that upscaling put between elements
    Padding,
};

struct Tap {
    TapKind kind = TapKind::Padding;
    std::uint32_t index = 0;  ///< row or column of the stored IFM
};

/// One direction of the window, as the operation has it.
class Axis {
  public:
    [[nodiscard]] static Axis vertical(const npu::Operation& op) {
        return {op.ofm.height,  op.kernel.height,  op.kernel.stride_y, op.kernel.dilation_y,
                op.padding.top, op.padding.bottom, op.upscale};
    }
    [[nodiscard]] static Axis horizontal(const npu::Operation& op) {
        return {op.ofm.width,    op.kernel.width,  op.kernel.stride_x, op.kernel.dilation_x,
                op.padding.left, op.padding.right, op.upscale};
    }

    /// What kernel element `k` of output `out` looks at.
    [[nodiscard]] Tap tap(std::uint32_t out, std::uint32_t k) const {
        const std::int64_t position = std::int64_t{out} * stride_ - before_ + std::int64_t{k} * dilation_;
        if (position < 0 || position >= need_) return {};
        if (upscale_ == npu::Upscale::None) return {TapKind::Stored, static_cast<std::uint32_t>(position)};
        const auto index = static_cast<std::uint32_t>(position >> 1);
        return {upscale_ == npu::Upscale::Zeros && position % 2 != 0 ? TapKind::Inserted : TapKind::Stored, index};
    }

  private:
    Axis(std::uint32_t outputs, std::uint32_t kernel, std::uint32_t stride, std::uint32_t dilation,
         std::uint32_t before, std::uint32_t after, npu::Upscale upscale)
        : need_(std::int64_t{outputs - 1} * stride + std::int64_t{kernel - 1} * dilation + 1 - before - after),
          stride_(stride),
          dilation_(dilation),
          before_(before),
          upscale_(upscale) {}

    std::int64_t need_;  // rows or columns of the (upscaled) IFM
    std::int64_t stride_, dilation_, before_;
    npu::Upscale upscale_;
};

/// Both directions: padding wins over inserted zeros.
[[nodiscard]] inline TapKind joined(const Tap& y, const Tap& x) {
    if (y.kind == TapKind::Padding || x.kind == TapKind::Padding) return TapKind::Padding;
    return y.kind == TapKind::Stored && x.kind == TapKind::Stored ? TapKind::Stored : TapKind::Inserted;
}

/// A position of the window that looks at a stored element.
struct StoredTap {
    std::uint32_t ky, kx, y, x;
};

/// All of them for output (y, x), in kernel order. Reuses `taps`.
inline void stored_taps(const npu::Operation& op, std::uint32_t y, std::uint32_t x, std::vector<StoredTap>& taps) {
    const Axis vertical = Axis::vertical(op), horizontal = Axis::horizontal(op);
    taps.clear();
    for (std::uint32_t ky = 0; ky < op.kernel.height; ++ky) {
        const Tap row = vertical.tap(y, ky);
        if (row.kind != TapKind::Stored) continue;
        for (std::uint32_t kx = 0; kx < op.kernel.width; ++kx) {
            const Tap column = horizontal.tap(x, kx);
            if (column.kind == TapKind::Stored) taps.push_back({ky, kx, row.index, column.index});
        }
    }
}

}  // namespace talpa::npu_model
