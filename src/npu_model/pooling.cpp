// Max and average pooling and the sum over channels, plain (ethos-u65, sections 5.4, 5.5 and the end of 5.7).
#include <algorithm>
#include <bit>

#include "npu_model/feature_map_access.h"
#include "npu_model/output.h"
#include "npu_model/reference.h"
#include "npu_model/rounding.h"
#include "npu_model/window.h"

namespace talpa::npu_model {

namespace {

// Calls fn(kind, pixel) for each position of the window at (y, x) that is not padding; `pixel` points at the channels
// of a stored element and is null for inserted zeros.
template <typename Fn>
void for_each_tap(const npu::Operation& op, const DenseMap& ifm, std::uint32_t y, std::uint32_t x, Fn fn) {
    const Axis vertical = Axis::vertical(op), horizontal = Axis::horizontal(op);
    for (std::uint32_t ky = 0; ky < op.kernel.height; ++ky) {
        const Tap row = vertical.tap(y, ky);
        if (row.kind == TapKind::Padding) continue;
        for (std::uint32_t kx = 0; kx < op.kernel.width; ++kx) {
            const Tap column = horizontal.tap(x, kx);
            const TapKind kind = joined(row, column);
            if (kind != TapKind::Padding) fn(kind == TapKind::Stored ? ifm.at(row.index, column.index) : nullptr);
        }
    }
}

// The hardware's reciprocal of a window of n elements. Slightly too large, so that exact halves round away from zero.
npu::Scale window_scale(std::uint32_t n) {
    const auto k = static_cast<unsigned>(std::bit_width(n - 1));
    return {static_cast<std::uint32_t>(((std::uint64_t{1} << (31 + k)) + (std::uint64_t{1} << k)) / n),
            static_cast<std::uint8_t>(31 + k)};
}

}  // namespace

Result<void> max_pool(const Context& context) {
    const npu::Operation& op = context.op;
    const OutputStage output(context, OutputZeroPoint::Ignored);
    const DenseMap ifm = load_map(context.memory(op.ifm), op.ifm, 0);
    std::vector<std::int64_t> best(op.ofm.depth);
    for (std::uint32_t y = 0; y < op.ofm.height; ++y)
        for (std::uint32_t x = 0; x < op.ofm.width; ++x) {
            std::ranges::fill(best, op.ifm.type.min());
            for_each_tap(op, ifm, y, x, [&](const std::int32_t* pixel) {
                for (std::uint32_t c = 0; c < op.ofm.depth; ++c)
                    best[c] = std::max<std::int64_t>(best[c], pixel != nullptr ? pixel[c] : op.ifm.zero_point);
            });
            for (std::uint32_t c = 0; c < op.ofm.depth; ++c) output.store(y, x, c, best[c]);
        }
    return {};
}

Result<void> average_pool(const Context& context) {
    const npu::Operation& op = context.op;
    const OutputStage output(context);
    const DenseMap ifm = load_map(context.memory(op.ifm), op.ifm, op.ifm.zero_point);
    // Any padding makes the hardware divide each window by its own count, whatever OFM_SCALE holds.
    const bool own_division = op.padding.any() || !op.ofm_global_scale;
    std::vector<std::int64_t> sum(op.ofm.depth);
    for (std::uint32_t y = 0; y < op.ofm.height; ++y)
        for (std::uint32_t x = 0; x < op.ofm.width; ++x) {
            std::ranges::fill(sum, 0);
            std::uint32_t valid = 0;
            for_each_tap(op, ifm, y, x, [&](const std::int32_t* pixel) {
                ++valid;
                if (pixel == nullptr) return;
                for (std::uint32_t c = 0; c < op.ofm.depth; ++c) sum[c] += pixel[c];
            });
            // A window that is all padding has a sum of zero; any divisor will do.
            const npu::Scale s = own_division ? window_scale(std::max(1u, valid)) : op.ofm_scale;
            for (std::uint32_t c = 0; c < op.ofm.depth; ++c)
                output.store(y, x, c, scale(accumulated(context, sum[c]), s, op.ofm_rounding));
        }
    return {};
}

Result<void> reduce_sum(const Context& context) {
    const npu::Operation& op = context.op;
    const OutputStage output(context);
    const DenseMap ifm = load_map(context.memory(op.ifm), op.ifm, op.ifm.type.bytes == 4 ? 0 : op.ifm.zero_point);
    for (std::uint32_t y = 0; y < op.ofm.height; ++y)
        for (std::uint32_t x = 0; x < op.ofm.width; ++x) {
            std::int64_t sum = 0;
            for_each_tap(op, ifm, y, x, [&](const std::int32_t* pixel) {
                if (pixel == nullptr) return;
                for (std::uint32_t c = 0; c < op.ifm.depth; ++c) sum += pixel[c];
            });
            // A 32-bit sum; beyond that the exact one is kept, and saturates on store (section 13, item 3).
            if (sum != wrap_to(sum, 32)) context.findings.note(Finding::Kind::AccumulatorOverflow);
            output.store(y, x, 0, scale(sum, op.ofm_scale, op.ofm_rounding));
        }
    return {};
}

}  // namespace talpa::npu_model
