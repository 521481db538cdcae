// Which bytes an operation touches: every feature map, weight range and DMA side as boxes of bytes (a run repeated with
// up to three strides), from which come the hull for bounds checks, the exact runs for hazard checks and sizes for the
// cycle model. Freestanding. (ethos-u65, sections 4.1, 4.2 and 6.2; pte-format, section 7.5)
#pragma once

#include <array>
#include <cstdint>

#include "npu/hardware.h"
#include "npu/operation.h"

namespace talpa::npu {

/// Bytes [begin, end). Signed: a stride may lead below the start of a region, which is a fault to report.
struct Extent {
    std::int64_t begin = 0, end = 0;

    friend constexpr bool operator==(Extent, Extent) = default;
    [[nodiscard]] constexpr bool empty() const { return end <= begin; }
    [[nodiscard]] constexpr bool overlaps(Extent o) const {
        return !empty() && !o.empty() && begin < o.end && o.begin < end;
    }
    /// The smallest extent that holds both; an empty one adds nothing.
    [[nodiscard]] constexpr Extent joined(Extent o) const {
        if (empty()) return o;
        if (o.empty()) return *this;
        return {begin < o.begin ? begin : o.begin, end > o.end ? end : o.end};
    }
};

/// `run` bytes at begin + i*stride[0] + j*stride[1] + k*stride[2] for i, j, k below count[0], count[1], count[2].
struct Box {
    std::int64_t begin = 0;
    std::int64_t run = 0;
    std::int64_t padding = 0;  ///< bytes after each run that are no data but belong to it: padding channels of a brick
    std::array<std::int64_t, 3> count{1, 1, 1};
    std::array<std::int64_t, 3> stride{};

    [[nodiscard]] bool empty() const { return run <= 0 || count[0] <= 0 || count[1] <= 0 || count[2] <= 0; }
    /// First to last byte, padding included. Saturates far outside 40 bits instead of overflowing.
    [[nodiscard]] Extent hull() const;
    /// The same bytes with as few runs as the strides allow; the padding is dropped.
    [[nodiscard]] Box merged() const;
    /// Runs that `for_each_run` would visit; saturates.
    [[nodiscard]] std::int64_t runs() const;
    /// Calls fn(Extent) for each run, in address order of the dimensions. Merge first.
    template <typename Fn>
    void for_each_run(Fn&& fn) const {
        if (empty()) return;
        for (std::int64_t k = 0; k < count[2]; ++k)
            for (std::int64_t j = 0; j < count[1]; ++j)
                for (std::int64_t i = 0; i < count[0]; ++i) {
                    const std::int64_t at = begin + i * stride[0] + j * stride[1] + k * stride[2];
                    fn(Extent{at, at + run});
                }
    }
};

/// What an operation uses a range for.
enum class Operand : std::uint8_t { Ifm, Ifm2, Ofm, Weights, Scales, DmaSource, DmaDestination, Lut };
[[nodiscard]] const char* operand_name(Operand operand);

struct Access {
    Operand operand = Operand::Ifm;
    bool is_write = false;
    bool internal = false;  ///< SHRAM: addresses are those of the shared RAM, `region` means nothing
    std::uint8_t region = 0;
};

/// Boxes of a feature map, none empty: for each tile one, or in bricks up to three (cut first brick, whole ones, cut
/// last).
struct FeatureMapBoxes {
    std::array<Box, 12> boxes;
    unsigned count = 0;
};
[[nodiscard]] FeatureMapBoxes boxes_of(const FeatureMap& fm);
/// The part [y0, y1) x [x0, x1) x [c0, c1) of a feature map, which must lie inside it.
struct Volume {
    std::uint32_t y0 = 0, y1 = 0, x0 = 0, x1 = 0, c0 = 0, c1 = 0;
};
[[nodiscard]] FeatureMapBoxes boxes_of(const FeatureMap& fm, const Volume& part);
[[nodiscard]] Extent hull(const FeatureMap& fm);

/// The two sides of a DMA (section 3.4): `length` bytes, size0 rows of it in 2D, size1 planes in 3D. A side whose own
/// mode is 1D is contiguous. Row r of plane p of a strided side starts at p * (length * size0 + skip1) + r * (length +
/// skip0).
[[nodiscard]] Box source_box(const Dma& dma);
[[nodiscard]] Box destination_box(const Dma& dma);

inline constexpr std::int64_t kLutSlotBytes = 256;
/// Bytes of the table that an operation with LUT activation reads (section 6.2).
[[nodiscard]] std::int64_t lut_bytes(const Operation& op);

/// Calls fn(const Access&, const Box&) for every box of memory that the operation reads or writes; reads first.
/// `lut_base` is where slot 0 lies in the shared RAM of the device.
template <typename Fn>
void for_each_box(const Operation& op, Fn&& fn, std::int64_t lut_base = kU65_256.lut_base()) {
    if (op.kind == OpKind::Dma) {
        fn(Access{Operand::DmaSource, false, op.dma.src_internal, op.dma.src_region}, source_box(op.dma));
        fn(Access{Operand::DmaDestination, true, op.dma.dst_internal, op.dma.dst_region}, destination_box(op.dma));
        return;
    }
    if (!is_kernel(op.kind)) return;
    const auto map = [&](Operand operand, const FeatureMap& fm, bool is_write) {
        const FeatureMapBoxes found = boxes_of(fm);
        for (unsigned i = 0; i < found.count; ++i) fn(Access{operand, is_write, false, fm.region}, found.boxes[i]);
    };
    const auto range = [&](Operand operand, std::uint8_t region, const Range& r) {
        if (r.size == 0) return;
        Box box;
        box.begin = static_cast<std::int64_t>(r.offset);
        box.run = static_cast<std::int64_t>(r.size);
        fn(Access{operand, false, false, region}, box);
    };
    map(Operand::Ifm, op.ifm, false);
    if (has_ifm2(op.kind) && !op.ifm2_is_scalar) map(Operand::Ifm2, op.ifm2, false);
    if (has_weights(op.kind)) {
        for (const Range& r : op.weights) range(Operand::Weights, op.weight_region, r);
        for (const Range& r : op.scales) range(Operand::Scales, op.scale_region, r);
    }
    if (op.activation.function == Activation::Function::Lut) {
        Box box;
        box.begin = lut_base + kLutSlotBytes * op.activation.lut_slot;
        box.run = lut_bytes(op);
        fn(Access{Operand::Lut, false, true, 0}, box);
    }
    map(Operand::Ofm, op.ofm, true);
}

/// The same with the hull of each box: fn(const Access&, Extent).
template <typename Fn>
void for_each_access(const Operation& op, Fn&& fn, std::int64_t lut_base = kU65_256.lut_base()) {
    for_each_box(
        op,
        [&](const Access& access, const Box& box) {
            if (!box.empty()) fn(access, box.hull());
        },
        lut_base);
}

}  // namespace talpa::npu
