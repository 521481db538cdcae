// What one operation of a command stream does, with every register resolved: what the decoder hands to the functional
// model, the cycle model, the hazard checker, the bounds scan and the reports. Freestanding. (ethos-u65, sections 3 to
// 6)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace talpa::npu {

inline constexpr unsigned kRegionCount = 8;
inline constexpr unsigned kMaxCores = 2;
inline constexpr unsigned kOpKindCount = 21;

enum class OpKind : std::uint8_t {
    Conv,
    Depthwise,
    MaxPool,
    AvgPool,
    ReduceSum,  // read a window of the IFM
    Mul,
    Add,
    Sub,
    Min,
    Max,
    Lrelu,
    Abs,
    Clz,
    Shr,
    Shl,  // elementwise
    Dma,
    DmaWait,
    KernelWait,
    PmuMask,
    Irq,
    Stop,  // control
};
static_assert(static_cast<unsigned>(OpKind::Stop) + 1 == kOpKindCount);
[[nodiscard]] constexpr bool is_elementwise(OpKind k) {
    return k >= OpKind::Mul && k <= OpKind::Shl;
}
/// A block operation?
[[nodiscard]] constexpr bool is_kernel(OpKind k) {
    return k <= OpKind::Shl;
}
[[nodiscard]] constexpr bool has_ifm2(OpKind k) {
    return is_elementwise(k) && k != OpKind::Lrelu && k != OpKind::Abs && k != OpKind::Clz;
}
[[nodiscard]] constexpr bool has_weights(OpKind k) {
    return k == OpKind::Conv || k == OpKind::Depthwise;
}
/// "CONV", "DEPTHWISE", "POOL_MAX", "ADD" …
[[nodiscard]] const char* op_kind_name(OpKind kind);

enum class Layout : std::uint8_t { Nhwc, Nhcwb16 };
enum class Rounding : std::uint8_t { Tfl = 0, Truncate = 1, Natural = 2 };
enum class Upscale : std::uint8_t { None = 0, Nearest = 1, Zeros = 2 };
enum class OperandScaling : std::uint8_t { OpaOpb16 = 0, Opa32 = 1, Opb32 = 2 };
enum class AccFormat : std::uint8_t { Int32 = 0, Int40 = 1, Fp16 = 2 };

/// An integer element: 1, 2 or 4 bytes, signed or not.
struct ElementType {
    std::uint8_t bytes = 1;
    bool is_signed = false;

    friend constexpr bool operator==(ElementType, ElementType) = default;
    [[nodiscard]] constexpr std::int64_t min() const { return is_signed ? -(std::int64_t{1} << (8 * bytes - 1)) : 0; }
    [[nodiscard]] constexpr std::int64_t max() const {
        return (std::int64_t{1} << (8 * bytes - (is_signed ? 1 : 0))) - 1;
    }
};

/// A feature map in memory: four tiles and three strides (section 4.1). Sizes are logical, in elements.
struct FeatureMap {
    ElementType type;
    Layout layout = Layout::Nhwc;
    std::uint8_t region = 0;
    std::int32_t zero_point = 0;
    std::uint32_t height = 0, width = 0, depth = 0;  ///< IFM: what the operation reads (section 4.2), before upscaling
    std::uint32_t height0 = 0, height1 = 0, width0 = 0;  ///< sizes of tiles 0 and 1 (registers + 1)
    std::array<std::uint64_t, 4> base{};                 ///< offsets in the region
    std::int64_t stride_x = 0, stride_y = 0, stride_c = 0;

    /// Byte offset of element (y, x, c) in the region.
    [[nodiscard]] constexpr std::int64_t offset_of(std::uint32_t y, std::uint32_t x, std::uint32_t c) const {
        unsigned tile = 0;
        if (x >= width0) {
            tile = 1;
            x -= width0;
            if (y >= height1) {
                tile = 3;
                y -= height1;
            }
        } else if (y >= height0) {
            tile = 2;
            y -= height0;
        }
        const auto start = static_cast<std::int64_t>(base[tile]) + std::int64_t{y} * stride_y;
        return layout == Layout::Nhwc
                   ? start + std::int64_t{x} * stride_x + std::int64_t{c} * type.bytes
                   : start + std::int64_t{c / 16} * stride_c + (std::int64_t{x} * 16 + c % 16) * type.bytes;
    }

    friend constexpr bool operator==(const FeatureMap&, const FeatureMap&) = default;
};

struct Kernel {
    std::uint32_t height = 1, width = 1;  ///< undilated
    std::uint8_t stride_y = 1, stride_x = 1;
    std::uint8_t dilation_y = 1, dilation_x = 1;
    bool part_kernel_first = false;  ///< weight order; ignored for depthwise
    bool decompose_4x4 = false;

    [[nodiscard]] constexpr std::uint32_t dilated_height() const { return (height - 1) * dilation_y + 1; }
    [[nodiscard]] constexpr std::uint32_t dilated_width() const { return (width - 1) * dilation_x + 1; }

    friend constexpr bool operator==(const Kernel&, const Kernel&) = default;
};

struct Padding {
    std::uint32_t top = 0, left = 0, right = 0, bottom = 0;
    [[nodiscard]] constexpr bool any() const { return (top | left | right | bottom) != 0; }

    friend constexpr bool operator==(const Padding&, const Padding&) = default;
};

struct Scale {
    std::uint32_t multiplier = 0;
    std::uint8_t shift = 0;  ///< 0..63

    friend constexpr bool operator==(const Scale&, const Scale&) = default;
};

struct Activation {
    enum class Function : std::uint8_t { None, Tanh, Sigmoid, Lut } function = Function::None;
    std::uint8_t lut_slot = 0;               ///< 0..7
    std::uint8_t clip_range = 0;             ///< 0 OFM precision, 2 uint8, 3 int8, 5 int16
    std::uint16_t raw_min = 0, raw_max = 0;  ///< signed for signed ranges

    /// ACTIVATION_MIN/MAX as numbers, where the range they apply to is signed or not.
    [[nodiscard]] constexpr std::int32_t min(bool is_signed) const {
        return is_signed ? static_cast<std::int16_t>(raw_min) : raw_min;
    }
    [[nodiscard]] constexpr std::int32_t max(bool is_signed) const {
        return is_signed ? static_cast<std::int16_t>(raw_max) : raw_max;
    }

    friend constexpr bool operator==(const Activation&, const Activation&) = default;
};

/// A range of bytes in a region.
struct Range {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;

    friend constexpr bool operator==(const Range&, const Range&) = default;
};

struct Dma {
    std::uint8_t src_region = 0, dst_region = 0;
    bool src_internal = false, dst_internal = false;        ///< SHRAM
    std::uint8_t src_stride_mode = 0, dst_stride_mode = 0;  ///< 0 1D (contiguous), 1 2D, 2 3D
    std::uint32_t size0 = 0, size1 = 0;                     ///< rows and planes of 2D and 3D
    std::uint64_t src = 0, dst = 0, length = 0;             ///< length: of a row in 2D and 3D
    std::int64_t skip0 = 0, skip1 = 0;                      ///< bytes left out after a row, after a plane's rows

    /// 0, 1 or 2 strided dimensions: of the side that has more.
    [[nodiscard]] constexpr unsigned dimensions() const {
        return src_stride_mode > dst_stride_mode ? src_stride_mode : dst_stride_mode;
    }
    friend constexpr bool operator==(const Dma&, const Dma&) = default;
};

/// One operation, all its registers resolved.
struct Operation {
    OpKind kind = OpKind::Stop;
    std::uint32_t offset_bytes = 0;  ///< of the command word in the stream
    std::uint16_t parameter = 0;     ///< of the command word: wait count, mask …

    FeatureMap ifm, ifm2, ofm;
    // Elementwise
    bool ifm2_broadcast_h = false, ifm2_broadcast_w = false, ifm2_broadcast_c = false;
    bool operands_reversed = false;  ///< operand A is IFM2
    bool ifm2_is_scalar = false;
    std::int32_t ifm2_scalar = 0;  ///< in IFM2's type
    OperandScaling operand_scaling = OperandScaling::OpaOpb16;
    Rounding ifm_rounding = Rounding::Tfl;
    Scale opa_scale;  ///< with opb_scale: of ADD and SUB
    std::uint32_t opb_scale = 0;
    // Windows
    Kernel kernel;
    Padding padding;
    Upscale upscale = Upscale::None;
    // Output
    bool ofm_global_scale = false;  ///< OFM_PRECISION[8]: ofm_scale, else per-channel records
    Scale ofm_scale;                ///< zero without ofm_global_scale
    Rounding ofm_rounding = Rounding::Tfl;
    Activation activation;
    AccFormat acc_format = AccFormat::Int32;
    // Weights and scales, one range per core
    std::uint8_t cores = 1;
    std::uint8_t weight_region = 0, scale_region = 0;
    std::array<Range, kMaxCores> weights{}, scales{};
    // Schedule: no functional effect but the block depth, which orders the weights
    std::uint32_t block_height = 1, block_width = 1, block_depth = 1;
    std::uint8_t blockdep = 0;
    std::uint16_t ib_end = 0, ab_start = 0, ifm2_ib_start = 0;

    Dma dma;

    friend constexpr bool operator==(const Operation&, const Operation&) = default;
};

}  // namespace talpa::npu
