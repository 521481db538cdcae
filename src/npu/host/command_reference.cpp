#include "npu/host/command_reference.h"

namespace talpa::npu {

namespace {

// clang-format off
constexpr RegisterReference kRegisters[] = {
    {static_cast<std::uint16_t>(Cmd0::IFM_PAD_TOP), false, RegisterFormat::Number, "padding above the IFM, in elements of the upscaled grid (7 bits)"},
    {static_cast<std::uint16_t>(Cmd0::IFM_PAD_LEFT), false, RegisterFormat::Number, "padding left of the IFM, in elements of the upscaled grid (7 bits)"},
    {static_cast<std::uint16_t>(Cmd0::IFM_PAD_RIGHT), false, RegisterFormat::Number, "padding right of the IFM, in elements of the upscaled grid (8 bits)"},
    {static_cast<std::uint16_t>(Cmd0::IFM_PAD_BOTTOM), false, RegisterFormat::Number, "padding below the IFM, in elements of the upscaled grid (8 bits)"},
    {static_cast<std::uint16_t>(Cmd0::IFM_DEPTH_M1), false, RegisterFormat::MinusOne, "IFM channels - 1"},
    {static_cast<std::uint16_t>(Cmd0::IFM_PRECISION), false, RegisterFormat::IfmPrecision, "[0] signed, [3:2] 8/16/32 bit, [6] bricks, [9:8] which operand ADD and SUB scale (0 both, 1 A, 2 B), [15:14] rounding of that scaling"},
    {static_cast<std::uint16_t>(Cmd0::IFM_UPSCALE), false, RegisterFormat::Upscale, "0 none, 1 nearest 2x2, 2 zero insertion 2x2"},
    {static_cast<std::uint16_t>(Cmd0::IFM_ZERO_POINT), false, RegisterFormat::Signed, "IFM zero point, signed for signed types"},
    {static_cast<std::uint16_t>(Cmd0::IFM_WIDTH0_M1), false, RegisterFormat::MinusOne, "width of tiles 0 and 2, - 1"},
    {static_cast<std::uint16_t>(Cmd0::IFM_HEIGHT0_M1), false, RegisterFormat::MinusOne, "height of tile 0, - 1"},
    {static_cast<std::uint16_t>(Cmd0::IFM_HEIGHT1_M1), false, RegisterFormat::MinusOne, "height of tile 1, - 1"},
    {static_cast<std::uint16_t>(Cmd0::IFM_IB_END), false, RegisterFormat::Number, "first bank of the shared RAM after the IFM buffers"},
    {static_cast<std::uint16_t>(Cmd0::IFM_REGION), false, RegisterFormat::Number, "region of the IFM, 0..7"},
    {static_cast<std::uint16_t>(Cmd0::OFM_WIDTH_M1), false, RegisterFormat::MinusOne, "OFM width - 1"},
    {static_cast<std::uint16_t>(Cmd0::OFM_HEIGHT_M1), false, RegisterFormat::MinusOne, "OFM height - 1"},
    {static_cast<std::uint16_t>(Cmd0::OFM_DEPTH_M1), false, RegisterFormat::MinusOne, "OFM channels - 1"},
    {static_cast<std::uint16_t>(Cmd0::OFM_PRECISION), false, RegisterFormat::OfmPrecision, "[0] signed, [2:1] 8/16/32 bit, [6] bricks, [8] OFM_SCALE for all channels (else a record per channel), [15:14] rounding: 0 TFL, 1 truncate, 2 natural"},
    {static_cast<std::uint16_t>(Cmd0::OFM_BLK_WIDTH_M1), false, RegisterFormat::MinusOne, "block width - 1"},
    {static_cast<std::uint16_t>(Cmd0::OFM_BLK_HEIGHT_M1), false, RegisterFormat::MinusOne, "block height - 1"},
    {static_cast<std::uint16_t>(Cmd0::OFM_BLK_DEPTH_M1), false, RegisterFormat::MinusOne, "block depth - 1; orders the weights too"},
    {static_cast<std::uint16_t>(Cmd0::OFM_ZERO_POINT), false, RegisterFormat::Signed, "OFM zero point"},
    {static_cast<std::uint16_t>(Cmd0::OFM_WIDTH0_M1), false, RegisterFormat::MinusOne, "width of tiles 0 and 2, - 1"},
    {static_cast<std::uint16_t>(Cmd0::OFM_HEIGHT0_M1), false, RegisterFormat::MinusOne, "height of tile 0, - 1"},
    {static_cast<std::uint16_t>(Cmd0::OFM_HEIGHT1_M1), false, RegisterFormat::MinusOne, "height of tile 1, - 1"},
    {static_cast<std::uint16_t>(Cmd0::OFM_REGION), false, RegisterFormat::Number, "region of the OFM"},
    {static_cast<std::uint16_t>(Cmd0::KERNEL_WIDTH_M1), false, RegisterFormat::MinusOne, "dilated kernel width - 1"},
    {static_cast<std::uint16_t>(Cmd0::KERNEL_HEIGHT_M1), false, RegisterFormat::MinusOne, "dilated kernel height - 1"},
    {static_cast<std::uint16_t>(Cmd0::KERNEL_STRIDE), false, RegisterFormat::KernelStride, "[0] and [8:6] stride x - 1, [1] and [11:9] stride y - 1, [2] part-kernel-first weights, [3] dilation x - 1, [4] dilation y - 1, [5] sub-kernels of 4x4"},
    {static_cast<std::uint16_t>(Cmd0::PARALLEL_MODE), false, RegisterFormat::MinusOne, "cores in use - 1; U65 only"},
    {static_cast<std::uint16_t>(Cmd0::ACC_FORMAT), false, RegisterFormat::AccFormat, "0 int32, 1 int40, 2 fp16"},
    {static_cast<std::uint16_t>(Cmd0::ACTIVATION), false, RegisterFormat::Activation, "[4:0] 0 none, 3 tanh, 4 sigmoid, 16..23 table in LUT slot 0..7; [15:12] range that clamps: 0 OFM type, 2 uint8, 3 int8, 5 int16"},
    {static_cast<std::uint16_t>(Cmd0::ACTIVATION_MIN), false, RegisterFormat::Signed, "lowest output, in quantized units"},
    {static_cast<std::uint16_t>(Cmd0::ACTIVATION_MAX), false, RegisterFormat::Signed, "highest output"},
    {static_cast<std::uint16_t>(Cmd0::WEIGHT_REGION), false, RegisterFormat::Number, "region of the weights"},
    {static_cast<std::uint16_t>(Cmd0::SCALE_REGION), false, RegisterFormat::Number, "region of the scale records"},
    {static_cast<std::uint16_t>(Cmd0::AB_START), false, RegisterFormat::Number, "first bank of the accumulators"},
    {static_cast<std::uint16_t>(Cmd0::BLOCKDEP), false, RegisterFormat::Number, "blocks of the previous operation that may still run when this one starts, 0..3"},
    {static_cast<std::uint16_t>(Cmd0::DMA0_SRC_REGION), false, RegisterFormat::DmaRegion, "[7:0] region, [8] shared RAM instead, [10:9] strides: 0 1D, 1 2D, 2 3D"},
    {static_cast<std::uint16_t>(Cmd0::DMA0_DST_REGION), false, RegisterFormat::DmaRegion, "as DMA0_SRC_REGION"},
    {static_cast<std::uint16_t>(Cmd0::DMA0_SIZE0), false, RegisterFormat::Number, "rows of a 2D or 3D DMA; U65 only"},
    {static_cast<std::uint16_t>(Cmd0::DMA0_SIZE1), false, RegisterFormat::Number, "planes of a 3D DMA; U65 only"},
    {static_cast<std::uint16_t>(Cmd0::IFM2_BROADCAST), false, RegisterFormat::Broadcast, "[0] H, [1] W, [2] C of IFM2 is 1, [6] operands reversed, [7] IFM2 is IFM2_SCALAR"},
    {static_cast<std::uint16_t>(Cmd0::IFM2_SCALAR), false, RegisterFormat::Signed, "the scalar operand"},
    {static_cast<std::uint16_t>(Cmd0::IFM2_PRECISION), false, RegisterFormat::Ifm2Precision, "[0] signed, [3:2] 8/16/32 bit, [6] bricks"},
    {static_cast<std::uint16_t>(Cmd0::IFM2_ZERO_POINT), false, RegisterFormat::Signed, "IFM2 zero point"},
    {static_cast<std::uint16_t>(Cmd0::IFM2_WIDTH0_M1), false, RegisterFormat::MinusOne, "width of tiles 0 and 2, - 1"},
    {static_cast<std::uint16_t>(Cmd0::IFM2_HEIGHT0_M1), false, RegisterFormat::MinusOne, "height of tile 0, - 1"},
    {static_cast<std::uint16_t>(Cmd0::IFM2_HEIGHT1_M1), false, RegisterFormat::MinusOne, "height of tile 1, - 1"},
    {static_cast<std::uint16_t>(Cmd0::IFM2_IB_START), false, RegisterFormat::Number, "first bank of the IFM2 buffers"},
    {static_cast<std::uint16_t>(Cmd0::IFM2_REGION), false, RegisterFormat::Number, "region of IFM2"},
    {static_cast<std::uint16_t>(Cmd1::IFM_BASE0), true, RegisterFormat::Address, "offset of tile 0 in the region"},
    {static_cast<std::uint16_t>(Cmd1::IFM_BASE1), true, RegisterFormat::Address, "offset of tile 1 in the region"},
    {static_cast<std::uint16_t>(Cmd1::IFM_BASE2), true, RegisterFormat::Address, "offset of tile 2 in the region"},
    {static_cast<std::uint16_t>(Cmd1::IFM_BASE3), true, RegisterFormat::Address, "offset of tile 3 in the region"},
    {static_cast<std::uint16_t>(Cmd1::IFM_STRIDE_X), true, RegisterFormat::Stride, "bytes from a column to the next; bricks ignore it"},
    {static_cast<std::uint16_t>(Cmd1::IFM_STRIDE_Y), true, RegisterFormat::Stride, "bytes from a row to the next; may be negative"},
    {static_cast<std::uint16_t>(Cmd1::IFM_STRIDE_C), true, RegisterFormat::Stride, "bytes from a brick of 16 channels to the next; NHWC ignores it"},
    {static_cast<std::uint16_t>(Cmd1::OFM_BASE0), true, RegisterFormat::Address, "offset of tile 0 in the region"},
    {static_cast<std::uint16_t>(Cmd1::OFM_BASE1), true, RegisterFormat::Address, "offset of tile 1 in the region"},
    {static_cast<std::uint16_t>(Cmd1::OFM_BASE2), true, RegisterFormat::Address, "offset of tile 2 in the region"},
    {static_cast<std::uint16_t>(Cmd1::OFM_BASE3), true, RegisterFormat::Address, "offset of tile 3 in the region"},
    {static_cast<std::uint16_t>(Cmd1::OFM_STRIDE_X), true, RegisterFormat::Stride, "bytes from a column to the next; bricks ignore it"},
    {static_cast<std::uint16_t>(Cmd1::OFM_STRIDE_Y), true, RegisterFormat::Stride, "bytes from a row to the next; may be negative"},
    {static_cast<std::uint16_t>(Cmd1::OFM_STRIDE_C), true, RegisterFormat::Stride, "bytes from a brick of 16 channels to the next; NHWC ignores it"},
    {static_cast<std::uint16_t>(Cmd1::WEIGHT_BASE), true, RegisterFormat::Address, "offset of the weight stream"},
    {static_cast<std::uint16_t>(Cmd1::WEIGHT_LENGTH), true, RegisterFormat::Length, "its bytes"},
    {static_cast<std::uint16_t>(Cmd1::SCALE_BASE), true, RegisterFormat::Address, "offset of the scale records"},
    {static_cast<std::uint16_t>(Cmd1::SCALE_LENGTH), true, RegisterFormat::Length, "their bytes"},
    {static_cast<std::uint16_t>(Cmd1::OFM_SCALE), true, RegisterFormat::Scale, "multiplier; parameter [5:0] the shift"},
    {static_cast<std::uint16_t>(Cmd1::OPA_SCALE), true, RegisterFormat::Scale, "operand A of ADD and SUB: multiplier, parameter [5:0] the shift"},
    {static_cast<std::uint16_t>(Cmd1::OPB_SCALE), true, RegisterFormat::Multiplier, "operand B: multiplier"},
    {static_cast<std::uint16_t>(Cmd1::DMA0_SRC), true, RegisterFormat::Address, "source of the DMA"},
    {static_cast<std::uint16_t>(Cmd1::DMA0_DST), true, RegisterFormat::Address, "its destination"},
    {static_cast<std::uint16_t>(Cmd1::DMA0_LEN), true, RegisterFormat::Length40, "its bytes, or those of a row in 2D and 3D"},
    {static_cast<std::uint16_t>(Cmd1::DMA0_SKIP0), true, RegisterFormat::Stride, "bytes left out after a row; U65 only"},
    {static_cast<std::uint16_t>(Cmd1::DMA0_SKIP1), true, RegisterFormat::Stride, "bytes left out after a plane; U65 only"},
    {static_cast<std::uint16_t>(Cmd1::IFM2_BASE0), true, RegisterFormat::Address, "offset of tile 0 in the region"},
    {static_cast<std::uint16_t>(Cmd1::IFM2_BASE1), true, RegisterFormat::Address, "offset of tile 1 in the region"},
    {static_cast<std::uint16_t>(Cmd1::IFM2_BASE2), true, RegisterFormat::Address, "offset of tile 2 in the region"},
    {static_cast<std::uint16_t>(Cmd1::IFM2_BASE3), true, RegisterFormat::Address, "offset of tile 3 in the region"},
    {static_cast<std::uint16_t>(Cmd1::IFM2_STRIDE_X), true, RegisterFormat::Stride, "bytes from a column to the next; bricks ignore it"},
    {static_cast<std::uint16_t>(Cmd1::IFM2_STRIDE_Y), true, RegisterFormat::Stride, "bytes from a row to the next; may be negative"},
    {static_cast<std::uint16_t>(Cmd1::IFM2_STRIDE_C), true, RegisterFormat::Stride, "bytes from a brick of 16 channels to the next; NHWC ignores it"},
    {static_cast<std::uint16_t>(Cmd1::WEIGHT1_BASE), true, RegisterFormat::Address, "weight stream of the second core"},
    {static_cast<std::uint16_t>(Cmd1::WEIGHT1_LENGTH), true, RegisterFormat::Length, "its bytes"},
    {static_cast<std::uint16_t>(Cmd1::SCALE1_BASE), true, RegisterFormat::Address, "scale records of the second core"},
    {static_cast<std::uint16_t>(Cmd1::SCALE1_LENGTH), true, RegisterFormat::Length, "their bytes"},
};
constexpr OperationReference kOperations[] = {
    {Op::STOP, "interrupt mask", "raise the interrupt, stop; ends the stream"},
    {Op::IRQ, "interrupt mask", "raise the interrupt, run on"},
    {Op::CONV, "0", "convolution; fully connected layers are 1x1 convolutions"},
    {Op::DEPTHWISE, "0", "depthwise convolution"},
    {Op::POOL, "0 max, 1 average, 2 reduce sum", "pooling; reduce sum adds up the channels"},
    {Op::ELEMENTWISE, "0 MUL, 1 ADD, 2 SUB, 3 MIN, 4 MAX, 5 LRELU, 6 ABS, 7 CLZ, 8 SHR, 9 SHL", "one or two operands of the output's shape"},
    {Op::DMA_START, "0", "start a copy; also fills the LUT"},
    {Op::DMA_WAIT, "n", "wait until at most n copies are outstanding"},
    {Op::KERNEL_WAIT, "n", "wait until at most n block operations are outstanding"},
    {Op::PMU_MASK, "0 or 1", "1: performance counters stop counting, where PMCR says so"},
};
// clang-format on

}  // namespace

std::span<const RegisterReference> register_reference() {
    return kRegisters;
}
std::span<const OperationReference> operation_reference() {
    return kOperations;
}

const RegisterReference* find_register(const Command& command) {
    for (const RegisterReference& r : kRegisters)
        if (r.code == command.code && r.has_payload == command.has_payload) return &r;
    return nullptr;
}

}  // namespace talpa::npu
