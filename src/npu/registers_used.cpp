#include "npu/registers_used.h"

namespace talpa::npu {

namespace {

using namespace use;

unsigned precision(const FeatureMap& fm, unsigned size_bit) {
    const unsigned log2 = fm.type.bytes == 4 ? 2 : fm.type.bytes == 2 ? 1 : 0;
    return (fm.type.is_signed ? 1u : 0u) | log2 << size_bit | (fm.layout == Layout::Nhcwb16 ? 0x40u : 0u);
}

unsigned ifm_precision(const Operation& o) {
    return precision(o.ifm, 2) | static_cast<unsigned>(o.operand_scaling) << 8 |
           static_cast<unsigned>(o.ifm_rounding) << 14;
}

unsigned ofm_precision(const Operation& o) {
    return precision(o.ofm, 1) | (o.ofm_global_scale ? 0x100u : 0u) | static_cast<unsigned>(o.ofm_rounding) << 14;
}

unsigned kernel_stride(const Kernel& k) {
    const unsigned x = k.stride_x - 1u, y = k.stride_y - 1u;
    return (x & 1) | (y & 1) << 1 | (k.part_kernel_first ? 4u : 0u) | (k.dilation_x - 1u) << 3 |
           (k.dilation_y - 1u) << 4 | (k.decompose_4x4 ? 0x20u : 0u) | (x >> 1) << 6 | (y >> 1) << 9;
}

unsigned activation(const Activation& a) {
    unsigned function = 0;
    switch (a.function) {
        case Activation::Function::None:
            break;
        case Activation::Function::Tanh:
            function = 3;
            break;
        case Activation::Function::Sigmoid:
            function = 4;
            break;
        case Activation::Function::Lut:
            function = 16u + a.lut_slot;
            break;
    }
    return function | unsigned{a.clip_range} << 12;
}

unsigned broadcast(const Operation& o) {
    return (o.ifm2_broadcast_h ? 1u : 0u) | (o.ifm2_broadcast_w ? 2u : 0u) | (o.ifm2_broadcast_c ? 4u : 0u) |
           (o.operands_reversed ? 0x40u : 0u) | (o.ifm2_is_scalar ? 0x80u : 0u);
}

unsigned dma_region(unsigned region, bool internal, unsigned stride_mode) {
    return region | (internal ? 0x100u : 0u) | stride_mode << 9;
}

// Bits 39:32 stand in the parameter, also of negative strides.
std::uint64_t address(std::uint64_t v) {
    return v & 0xFF'FFFF'FFFFu;
}
std::uint64_t address(std::int64_t v) {
    return address(static_cast<std::uint64_t>(v));
}
std::uint64_t scale(const Scale& s) {
    return std::uint64_t{s.shift} << 32 | s.multiplier;
}

#define CMD0(code, uses, expression) \
    {Cmd0::code, uses, [](const Operation& o) { return static_cast<std::uint16_t>(expression); }}
#define CMD1(code, uses, expression) \
    {Cmd1::code, uses, [](const Operation& o) { return static_cast<std::uint64_t>(expression); }}
// clang-format off
constexpr UsedCmd0 kCmd0[] = {
    CMD0(IFM_PAD_TOP, kWindow, o.padding.top),
    CMD0(IFM_PAD_LEFT, kWindow, o.padding.left),
    CMD0(IFM_PAD_RIGHT, kWindow, o.padding.right),
    CMD0(IFM_PAD_BOTTOM, kWindow, o.padding.bottom),
    CMD0(IFM_DEPTH_M1, kBlock, o.ifm.depth - 1),
    CMD0(IFM_PRECISION, kBlock, ifm_precision(o)),
    CMD0(IFM_UPSCALE, kWindow, static_cast<unsigned>(o.upscale)),
    CMD0(IFM_ZERO_POINT, kBlock, o.ifm.zero_point),
    CMD0(IFM_WIDTH0_M1, kBlock, o.ifm.width0 - 1),
    CMD0(IFM_HEIGHT0_M1, kBlock, o.ifm.height0 - 1),
    CMD0(IFM_HEIGHT1_M1, kBlock, o.ifm.height1 - 1),
    CMD0(IFM_IB_END, kBlock, o.ib_end),
    CMD0(IFM_REGION, kBlock, o.ifm.region),
    CMD0(OFM_WIDTH_M1, kBlock, o.ofm.width - 1),
    CMD0(OFM_HEIGHT_M1, kBlock, o.ofm.height - 1),
    CMD0(OFM_DEPTH_M1, kBlock, o.ofm.depth - 1),
    CMD0(OFM_PRECISION, kBlock, ofm_precision(o)),
    CMD0(OFM_BLK_WIDTH_M1, kBlock, o.block_width - 1),
    CMD0(OFM_BLK_HEIGHT_M1, kBlock, o.block_height - 1),
    CMD0(OFM_BLK_DEPTH_M1, kBlock, o.block_depth - 1),
    CMD0(OFM_ZERO_POINT, kBlock, o.ofm.zero_point),
    CMD0(OFM_WIDTH0_M1, kBlock, o.ofm.width0 - 1),
    CMD0(OFM_HEIGHT0_M1, kBlock, o.ofm.height0 - 1),
    CMD0(OFM_HEIGHT1_M1, kBlock, o.ofm.height1 - 1),
    CMD0(OFM_REGION, kBlock, o.ofm.region),
    CMD0(KERNEL_WIDTH_M1, kWindow, o.kernel.dilated_width() - 1),
    CMD0(KERNEL_HEIGHT_M1, kWindow, o.kernel.dilated_height() - 1),
    CMD0(KERNEL_STRIDE, kWindow, kernel_stride(o.kernel)),
    CMD0(PARALLEL_MODE, kBlock, o.cores - 1),
    CMD0(ACC_FORMAT, kBlock, static_cast<unsigned>(o.acc_format)),
    CMD0(ACTIVATION, kBlock, activation(o.activation)),
    CMD0(ACTIVATION_MIN, kBlock, o.activation.raw_min),
    CMD0(ACTIVATION_MAX, kBlock, o.activation.raw_max),
    CMD0(WEIGHT_REGION, kWeights, o.weight_region),
    CMD0(SCALE_REGION, kRecords, o.scale_region),
    CMD0(AB_START, kBlock, o.ab_start),
    CMD0(BLOCKDEP, kBlock, o.blockdep),
    CMD0(DMA0_SRC_REGION, kDma, dma_region(o.dma.src_region, o.dma.src_internal, o.dma.src_stride_mode)),
    CMD0(DMA0_DST_REGION, kDma, dma_region(o.dma.dst_region, o.dma.dst_internal, o.dma.dst_stride_mode)),
    CMD0(DMA0_SIZE0, kDma | kDma2d, o.dma.size0),
    CMD0(DMA0_SIZE1, kDma | kDma3d, o.dma.size1),
    CMD0(IFM2_BROADCAST, kTwoOperands, broadcast(o)),
    CMD0(IFM2_SCALAR, kScalar, o.ifm2_scalar),
    CMD0(IFM2_PRECISION, kTwoOperands, precision(o.ifm2, 2)),
    CMD0(IFM2_ZERO_POINT, kTwoOperands, o.ifm2.zero_point),
    CMD0(IFM2_WIDTH0_M1, kSecondMap, o.ifm2.width0 - 1),
    CMD0(IFM2_HEIGHT0_M1, kSecondMap, o.ifm2.height0 - 1),
    CMD0(IFM2_HEIGHT1_M1, kSecondMap, o.ifm2.height1 - 1),
    CMD0(IFM2_IB_START, kSecondMap, o.ifm2_ib_start),
    CMD0(IFM2_REGION, kSecondMap, o.ifm2.region),
};
constexpr UsedCmd1 kCmd1[] = {
    CMD1(IFM_BASE0, kBlock, address(o.ifm.base[0])),
    CMD1(IFM_BASE1, kBlock, address(o.ifm.base[1])),
    CMD1(IFM_BASE2, kBlock, address(o.ifm.base[2])),
    CMD1(IFM_BASE3, kBlock, address(o.ifm.base[3])),
    CMD1(IFM_STRIDE_X, kBlock, address(o.ifm.stride_x)),
    CMD1(IFM_STRIDE_Y, kBlock, address(o.ifm.stride_y)),
    CMD1(IFM_STRIDE_C, kBlock, address(o.ifm.stride_c)),
    CMD1(OFM_BASE0, kBlock, address(o.ofm.base[0])),
    CMD1(OFM_BASE1, kBlock, address(o.ofm.base[1])),
    CMD1(OFM_BASE2, kBlock, address(o.ofm.base[2])),
    CMD1(OFM_BASE3, kBlock, address(o.ofm.base[3])),
    CMD1(OFM_STRIDE_X, kBlock, address(o.ofm.stride_x)),
    CMD1(OFM_STRIDE_Y, kBlock, address(o.ofm.stride_y)),
    CMD1(OFM_STRIDE_C, kBlock, address(o.ofm.stride_c)),
    CMD1(WEIGHT_BASE, kWeights, address(o.weights[0].offset)),
    CMD1(WEIGHT_LENGTH, kWeights, o.weights[0].size),
    CMD1(SCALE_BASE, kRecords, address(o.scales[0].offset)),
    CMD1(SCALE_LENGTH, kRecords, o.scales[0].size),
    CMD1(OFM_SCALE, kGlobalScale, scale(o.ofm_scale)),
    CMD1(OPA_SCALE, kOperandScale, scale(o.opa_scale)),
    CMD1(OPB_SCALE, kOperandScale, o.opb_scale),
    CMD1(DMA0_SRC, kDma, address(o.dma.src)),
    CMD1(DMA0_DST, kDma, address(o.dma.dst)),
    CMD1(DMA0_LEN, kDma, address(o.dma.length)),
    CMD1(DMA0_SKIP0, kDma | kDma2d, address(o.dma.skip0)),
    CMD1(DMA0_SKIP1, kDma | kDma3d, address(o.dma.skip1)),
    CMD1(IFM2_BASE0, kSecondMap, address(o.ifm2.base[0])),
    CMD1(IFM2_BASE1, kSecondMap, address(o.ifm2.base[1])),
    CMD1(IFM2_BASE2, kSecondMap, address(o.ifm2.base[2])),
    CMD1(IFM2_BASE3, kSecondMap, address(o.ifm2.base[3])),
    CMD1(IFM2_STRIDE_X, kSecondMap, address(o.ifm2.stride_x)),
    CMD1(IFM2_STRIDE_Y, kSecondMap, address(o.ifm2.stride_y)),
    CMD1(IFM2_STRIDE_C, kSecondMap, address(o.ifm2.stride_c)),
    CMD1(WEIGHT1_BASE, kWeights | kSecondCore, address(o.weights[1].offset)),
    CMD1(WEIGHT1_LENGTH, kWeights | kSecondCore, o.weights[1].size),
    CMD1(SCALE1_BASE, kRecords | kSecondCore, address(o.scales[1].offset)),
    CMD1(SCALE1_LENGTH, kRecords | kSecondCore, o.scales[1].size),
};
// clang-format on
#undef CMD0
#undef CMD1

}  // namespace

std::span<const UsedCmd0> used_cmd0() {
    return kCmd0;
}
std::span<const UsedCmd1> used_cmd1() {
    return kCmd1;
}

std::uint16_t uses_of(const Operation& op) {
    if (op.kind == OpKind::Dma) {
        const unsigned dimensions = op.dma.dimensions();
        return static_cast<std::uint16_t>(kDma | (dimensions >= 1 ? kDma2d : 0) | (dimensions >= 2 ? kDma3d : 0));
    }
    if (!is_kernel(op.kind)) return 0;
    unsigned uses = kBlock;
    if (is_elementwise(op.kind)) {
        uses |= kElementwise;
        if (op.kind == OpKind::Add || op.kind == OpKind::Sub) uses |= kOperandScale;
        if (has_ifm2(op.kind)) uses |= kTwoOperands | (op.ifm2_is_scalar ? kScalar : kSecondMap);
    } else {
        uses |= kWindow;
    }
    if (has_weights(op.kind)) {
        uses |= kWeights;
        if (!op.ofm_global_scale) uses |= kRecords;
        if (op.cores > 1) uses |= kSecondCore;
    }
    if (op.ofm_global_scale) uses |= kGlobalScale;
    return static_cast<std::uint16_t>(uses);
}

std::uint32_t operation_word(const Operation& op) {
    const auto word = [](Op code, unsigned parameter) { return static_cast<std::uint32_t>(code) | parameter << 16; };
    if (is_elementwise(op.kind))
        return word(Op::ELEMENTWISE, static_cast<unsigned>(op.kind) - static_cast<unsigned>(OpKind::Mul));
    switch (op.kind) {
        case OpKind::Conv:
            return word(Op::CONV, op.parameter);
        case OpKind::Depthwise:
            return word(Op::DEPTHWISE, op.parameter);
        case OpKind::MaxPool:
            return word(Op::POOL, 0);
        case OpKind::AvgPool:
            return word(Op::POOL, 1);
        case OpKind::ReduceSum:
            return word(Op::POOL, 2);
        case OpKind::Dma:
            return word(Op::DMA_START, op.parameter);
        case OpKind::DmaWait:
            return word(Op::DMA_WAIT, op.parameter);
        case OpKind::KernelWait:
            return word(Op::KERNEL_WAIT, op.parameter);
        case OpKind::PmuMask:
            return word(Op::PMU_MASK, op.parameter);
        case OpKind::Irq:
            return word(Op::IRQ, op.parameter);
        default:
            return word(Op::STOP, op.parameter);
    }
}

}  // namespace talpa::npu
