// The registers of an Ethos-U55/U65 as tables: offsets, access, reset values, fields (ethos-u65, section 2.2). The
// driver programs by them, the simulated device serves them. Freestanding.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace talpa::npu {

inline constexpr std::uint32_t kRegisterSpaceBytes = 0x1000;

enum class RegisterAccess : std::uint8_t { ReadOnly, ReadWrite, WriteOnly };

/// Single registers. X(name, offset, access, reset value). ID and CONFIG depend on the part. BASEPn, event counters,
/// the read-back window and the live traversal state are ranges, below.
#define TALPA_NPU_REGISTERS(X)            \
    X(ID, 0x000, ReadOnly, 0)             \
    X(STATUS, 0x004, ReadOnly, 0x8)       \
    X(CMD, 0x008, ReadWrite, 0xC)         \
    X(RESET, 0x00C, WriteOnly, 0)         \
    X(QBASE0, 0x010, ReadWrite, 0)        \
    X(QBASE1, 0x014, ReadWrite, 0)        \
    X(QREAD, 0x018, ReadOnly, 0)          \
    X(QCONFIG, 0x01C, ReadWrite, 0)       \
    X(QSIZE, 0x020, ReadWrite, 0)         \
    X(PROT, 0x024, ReadOnly, 0)           \
    X(CONFIG, 0x028, ReadOnly, 0)         \
    X(LOCK, 0x02C, ReadWrite, 0)          \
    X(REGIONCFG, 0x03C, ReadWrite, 0)     \
    X(AXI_LIMIT0, 0x040, ReadWrite, 0)    \
    X(AXI_LIMIT1, 0x044, ReadWrite, 0)    \
    X(AXI_LIMIT2, 0x048, ReadWrite, 0)    \
    X(AXI_LIMIT3, 0x04C, ReadWrite, 0)    \
    X(WD_STATUS, 0x100, ReadOnly, 0)      \
    X(MAC_STATUS, 0x104, ReadOnly, 0)     \
    X(AO_STATUS, 0x108, ReadOnly, 0)      \
    X(DMA_STATUS0, 0x110, ReadOnly, 0)    \
    X(DMA_STATUS1, 0x114, ReadOnly, 0)    \
    X(CLKFORCE, 0x140, ReadWrite, 0)      \
    X(DEBUG_ADDRESS, 0x144, ReadWrite, 0) \
    X(DEBUG_MISC, 0x148, ReadWrite, 0)    \
    X(DEBUGCORE, 0x14C, ReadWrite, 0)     \
    X(DEBUG_BLOCK, 0x150, ReadWrite, 0)   \
    X(PMCR, 0x180, ReadWrite, 0x2000)     \
    X(PMCNTENSET, 0x184, ReadWrite, 0)    \
    X(PMCNTENCLR, 0x188, ReadWrite, 0)    \
    X(PMOVSSET, 0x18C, ReadWrite, 0)      \
    X(PMOVSCLR, 0x190, ReadWrite, 0)      \
    X(PMINTSET, 0x194, ReadWrite, 0)      \
    X(PMINTCLR, 0x198, ReadWrite, 0)      \
    X(PMCCNTR_LO, 0x1A0, ReadWrite, 0)    \
    X(PMCCNTR_HI, 0x1A4, ReadWrite, 0)    \
    X(PMCCNTR_CFG, 0x1A8, ReadWrite, 0)   \
    X(PMCAXI_CHAN, 0x1AC, ReadWrite, 0)   \
    X(CURRENT_QREAD, 0x27C, ReadOnly, 0)  \
    X(CURRENT_OP, 0x2B8, ReadOnly, 0)     \
    X(CURRENT_CMD, 0x2BC, ReadOnly, 0)    \
    X(REVISION, 0xFC0, ReadOnly, 0)       \
    X(PID4, 0xFD0, ReadOnly, 0x04)        \
    X(PID5, 0xFD4, ReadOnly, 0)           \
    X(PID6, 0xFD8, ReadOnly, 0)           \
    X(PID7, 0xFDC, ReadOnly, 0)           \
    X(PID0, 0xFE0, ReadOnly, 0x81)        \
    X(PID1, 0xFE4, ReadOnly, 0xB5)        \
    X(PID2, 0xFE8, ReadOnly, 0x0B)        \
    X(PID3, 0xFEC, ReadOnly, 0)           \
    X(CID0, 0xFF0, ReadOnly, 0x0D)        \
    X(CID1, 0xFF4, ReadOnly, 0xF0)        \
    X(CID2, 0xFF8, ReadOnly, 0x05)        \
    X(CID3, 0xFFC, ReadOnly, 0xB1)

namespace reg {
#define X(name, offset, access, reset) inline constexpr std::uint32_t name = offset;
TALPA_NPU_REGISTERS(X)
#undef X
inline constexpr std::uint32_t kBasep = 0x080;        ///< BASEPn: low word at 8n, high word at 8n + 4
inline constexpr std::uint32_t kShramWindow = 0x400;  ///< 1 KiB of the shared RAM, the bank in DEBUG_ADDRESS
inline constexpr std::uint32_t kPmevcntr = 0x300;     ///< event counters, 4 bytes each
inline constexpr std::uint32_t kPmevtyper = 0x380;    ///< their events
inline constexpr std::uint32_t kEventCounters = 4;
inline constexpr std::uint32_t kCommandWindow = 0x800, kCommandWindowEnd = 0xB5C;

/// Where the read-back window shows a command-stream register (lo and, for those with a payload, hi 4 bytes above).
[[nodiscard]] constexpr std::uint32_t command_readback(std::uint16_t code, bool has_payload) {
    std::uint32_t group = (code >> 4) & 0xF;
    if (group >= 8) group -= 4;
    return has_payload ? 0xA00 + 0x40 * group + 8 * (code & 0xFu) : 0x800 + 0x40 * group + 4 * (code & 0xFu);
}
}  // namespace reg

namespace status {
inline constexpr std::uint32_t kRunning = 1u << 0;
inline constexpr std::uint32_t kIrqRaised = 1u << 1;
inline constexpr std::uint32_t kBusError = 1u << 2;
inline constexpr std::uint32_t kReset = 1u << 3;
inline constexpr std::uint32_t kParseError = 1u << 4;
inline constexpr std::uint32_t kEndReached = 1u << 5;
inline constexpr std::uint32_t kPmuIrqRaised = 1u << 6;
inline constexpr std::uint32_t kWeightFault = 1u << 7;
inline constexpr std::uint32_t kEccFault = 1u << 8;
inline constexpr std::uint32_t kErrors = kBusError | kParseError | kWeightFault | kEccFault;
inline constexpr unsigned kInterfaceShift = 11, kChannelShift = 12, kHistoryShift = 16;

[[nodiscard]] constexpr unsigned faulting_channel(std::uint32_t v) {
    return (v >> kChannelShift) & 0xF;
}
[[nodiscard]] constexpr unsigned faulting_interface(std::uint32_t v) {
    return (v >> kInterfaceShift) & 1;
}
}  // namespace status

namespace cmd {
inline constexpr std::uint32_t kRun = 1u << 0;
inline constexpr std::uint32_t kClearIrq = 1u << 1;
inline constexpr std::uint32_t kClockQEnable = 1u << 2;
inline constexpr std::uint32_t kPowerQEnable = 1u << 3;
inline constexpr std::uint32_t kStop = 1u << 4;
inline constexpr std::uint32_t kKept = kClockQEnable | kPowerQEnable;  ///< the others are write-one actions
inline constexpr unsigned kClearHistoryShift = 16;
}  // namespace cmd

namespace pmu {
inline constexpr std::uint32_t kEnable = 1u << 0, kResetEvents = 1u << 1, kResetCycles = 1u << 2, kMaskEnable = 1u << 3;
inline constexpr std::uint32_t kCycleCounter = 1u << 31;  ///< in the enable, overflow and interrupt sets
}  // namespace pmu

/// Who on the AXI side was refused (faulting_channel).
enum class AxiChannel : std::uint8_t {
    Command = 0,
    Ifm = 1,
    Weights = 2,
    Scales = 3,
    Mem2MemRead = 4,
    OfmWrite = 8,
    Mem2MemWrite = 9,
};
/// "IFM read", "OFM write" …
[[nodiscard]] const char* axi_channel_name(unsigned channel);

}  // namespace talpa::npu
