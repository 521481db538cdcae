// The Ethos-U55/U65 command set as tables (ethos-u65, section 3): one row per command word, used by the decoder, the
// encoder, the printer and the docs alike. Names are those of the published interface without the NPU_SET_/NPU_OP_
// prefix.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace talpa::npu {

/// Operations: one word, control 0, code below 0x100. X(name, code)
#define TALPA_NPU_OPS(X)  \
    X(STOP, 0x000)        \
    X(IRQ, 0x001)         \
    X(CONV, 0x002)        \
    X(DEPTHWISE, 0x003)   \
    X(POOL, 0x005)        \
    X(ELEMENTWISE, 0x006) \
    X(DMA_START, 0x010)   \
    X(DMA_WAIT, 0x011)    \
    X(KERNEL_WAIT, 0x012) \
    X(PMU_MASK, 0x013)

/// Register writes of one word, control 0. X(name, code)
#define TALPA_NPU_CMD0(X)       \
    X(IFM_PAD_TOP, 0x100)       \
    X(IFM_PAD_LEFT, 0x101)      \
    X(IFM_PAD_RIGHT, 0x102)     \
    X(IFM_PAD_BOTTOM, 0x103)    \
    X(IFM_DEPTH_M1, 0x104)      \
    X(IFM_PRECISION, 0x105)     \
    X(IFM_UPSCALE, 0x107)       \
    X(IFM_ZERO_POINT, 0x109)    \
    X(IFM_WIDTH0_M1, 0x10A)     \
    X(IFM_HEIGHT0_M1, 0x10B)    \
    X(IFM_HEIGHT1_M1, 0x10C)    \
    X(IFM_IB_END, 0x10D)        \
    X(IFM_REGION, 0x10F)        \
    X(OFM_WIDTH_M1, 0x111)      \
    X(OFM_HEIGHT_M1, 0x112)     \
    X(OFM_DEPTH_M1, 0x113)      \
    X(OFM_PRECISION, 0x114)     \
    X(OFM_BLK_WIDTH_M1, 0x115)  \
    X(OFM_BLK_HEIGHT_M1, 0x116) \
    X(OFM_BLK_DEPTH_M1, 0x117)  \
    X(OFM_ZERO_POINT, 0x118)    \
    X(OFM_WIDTH0_M1, 0x11A)     \
    X(OFM_HEIGHT0_M1, 0x11B)    \
    X(OFM_HEIGHT1_M1, 0x11C)    \
    X(OFM_REGION, 0x11F)        \
    X(KERNEL_WIDTH_M1, 0x120)   \
    X(KERNEL_HEIGHT_M1, 0x121)  \
    X(KERNEL_STRIDE, 0x122)     \
    X(PARALLEL_MODE, 0x123)     \
    X(ACC_FORMAT, 0x124)        \
    X(ACTIVATION, 0x125)        \
    X(ACTIVATION_MIN, 0x126)    \
    X(ACTIVATION_MAX, 0x127)    \
    X(WEIGHT_REGION, 0x128)     \
    X(SCALE_REGION, 0x129)      \
    X(AB_START, 0x12D)          \
    X(BLOCKDEP, 0x12F)          \
    X(DMA0_SRC_REGION, 0x130)   \
    X(DMA0_DST_REGION, 0x131)   \
    X(DMA0_SIZE0, 0x132)        \
    X(DMA0_SIZE1, 0x133)        \
    X(IFM2_BROADCAST, 0x180)    \
    X(IFM2_SCALAR, 0x181)       \
    X(IFM2_PRECISION, 0x185)    \
    X(IFM2_ZERO_POINT, 0x189)   \
    X(IFM2_WIDTH0_M1, 0x18A)    \
    X(IFM2_HEIGHT0_M1, 0x18B)   \
    X(IFM2_HEIGHT1_M1, 0x18C)   \
    X(IFM2_IB_START, 0x18D)     \
    X(IFM2_REGION, 0x18F)

/// Register writes of two words, control 1: parameter[7:0] holds bits 39:32 of addresses, strides and DMA_LEN, and
/// parameter[5:0] the shift of OFM_SCALE and OPA_SCALE. X(name, code)
#define TALPA_NPU_CMD1(X)    \
    X(IFM_BASE0, 0x000)      \
    X(IFM_BASE1, 0x001)      \
    X(IFM_BASE2, 0x002)      \
    X(IFM_BASE3, 0x003)      \
    X(IFM_STRIDE_X, 0x004)   \
    X(IFM_STRIDE_Y, 0x005)   \
    X(IFM_STRIDE_C, 0x006)   \
    X(OFM_BASE0, 0x010)      \
    X(OFM_BASE1, 0x011)      \
    X(OFM_BASE2, 0x012)      \
    X(OFM_BASE3, 0x013)      \
    X(OFM_STRIDE_X, 0x014)   \
    X(OFM_STRIDE_Y, 0x015)   \
    X(OFM_STRIDE_C, 0x016)   \
    X(WEIGHT_BASE, 0x020)    \
    X(WEIGHT_LENGTH, 0x021)  \
    X(SCALE_BASE, 0x022)     \
    X(SCALE_LENGTH, 0x023)   \
    X(OFM_SCALE, 0x024)      \
    X(OPA_SCALE, 0x025)      \
    X(OPB_SCALE, 0x026)      \
    X(DMA0_SRC, 0x030)       \
    X(DMA0_DST, 0x031)       \
    X(DMA0_LEN, 0x032)       \
    X(DMA0_SKIP0, 0x033)     \
    X(DMA0_SKIP1, 0x034)     \
    X(IFM2_BASE0, 0x080)     \
    X(IFM2_BASE1, 0x081)     \
    X(IFM2_BASE2, 0x082)     \
    X(IFM2_BASE3, 0x083)     \
    X(IFM2_STRIDE_X, 0x084)  \
    X(IFM2_STRIDE_Y, 0x085)  \
    X(IFM2_STRIDE_C, 0x086)  \
    X(WEIGHT1_BASE, 0x090)   \
    X(WEIGHT1_LENGTH, 0x091) \
    X(SCALE1_BASE, 0x092)    \
    X(SCALE1_LENGTH, 0x093)

#define X(name, code) name = code,
enum class Op : std::uint16_t { TALPA_NPU_OPS(X) };
enum class Cmd0 : std::uint16_t { TALPA_NPU_CMD0(X) };
enum class Cmd1 : std::uint16_t { TALPA_NPU_CMD1(X) };
#undef X

/// One command of a stream, not yet given a meaning.
struct Command {
    std::uint32_t offset_bytes = 0;  ///< of its first word in the stream
    std::uint16_t code = 0;          ///< bits 9:0
    bool has_payload = false;        ///< control 1: a Cmd1; else an Op (code < 0x100) or a Cmd0
    std::uint16_t parameter = 0;
    std::uint32_t payload = 0;

    [[nodiscard]] bool is_operation() const { return !has_payload && code < 0x100; }
    /// Bits 39:0 of an address or length.
    [[nodiscard]] std::uint64_t address() const { return (std::uint64_t{parameter & 0xFFu} << 32) | payload; }
    /// The same, sign-extended from bit 39: strides may be negative.
    [[nodiscard]] std::int64_t signed_address() const { return static_cast<std::int64_t>(address() << 24) >> 24; }
};

/// The command's name ("OFM_SCALE"), or nothing if no such command exists.
[[nodiscard]] std::optional<std::string_view> command_name(const Command& command);
/// Does such a command exist?
[[nodiscard]] bool is_command(const Command& command);

}  // namespace talpa::npu
