// The one memory map that firmware, board, web app and compiler share. Addresses are system addresses, as Linux and the
// NPU see them, except the TCMs and what lies in them, which are as the Cortex-M33 sees them. Checked for overlaps when
// compiled. (imx93-remoteproc, sections 1, 2.4 and 10)
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/core/checked_math.h"

namespace talpa::link {

#ifdef TALPA_COMPACT_ERRORS
/// The firmware never says the name of a range.
struct RangeName {
    consteval RangeName(const char*) {}  // NOLINT(google-explicit-constructor)
};
#else
using RangeName = std::string_view;
#endif

struct MemoryRange {
    [[no_unique_address]] RangeName name;
    std::uint32_t base;
    std::uint32_t size;

    [[nodiscard]] constexpr std::uint32_t end() const { return base + size; }
    [[nodiscard]] constexpr bool contains(std::uint64_t address, std::uint64_t length) const {
        return address >= base && range_inside(address - base, length, size);
    }
};

inline constexpr MemoryRange kItcm{"M33 code TCM", 0x0FFE0000, 0x20000};
/// Its first 12 KiB are left to the vendor's suspend code: the image starts behind them (firmware/chip/imx93_m33.ld).
inline constexpr MemoryRange kDtcm{"M33 data TCM", 0x20000000, 0x20000};
/// Where Linux keeps the live resource table (node rsc-table@2021e000), as the M33 sees it; the trace buffer shares the
/// page.
inline constexpr MemoryRange kLiveResourceTable{"live resource table", 0x2001E000, 0x200};
inline constexpr MemoryRange kTraceBuffer{"trace buffer", 0x2001E200, 0xC00};
/// The same TCMs on the system bus, as Linux writes them.
inline constexpr std::uint32_t kItcmSystem = 0x201E0000;
inline constexpr std::uint32_t kDtcmSystem = 0x20200000;
inline constexpr MemoryRange kOcram{"OCRAM (NPU fast scratch, build option)", 0x20480000, 0x60000};
inline constexpr MemoryRange kMessagingUnitM33{"MU1 side A (M33)", 0x44220000, 0x10000};
inline constexpr MemoryRange kMessagingUnitLinux{"MU1 side B (Linux)", 0x44230000, 0x10000};
inline constexpr MemoryRange kNpuRegisters{"Ethos-U65 registers", 0x4A900000, 0x10000};

inline constexpr MemoryRange kVring0{"vdev0vring0 (M33 to Linux)", 0xA4000000, 0x8000};
inline constexpr MemoryRange kVring1{"vdev0vring1 (Linux to M33)", 0xA4008000, 0x8000};
inline constexpr MemoryRange kVringBuffers{"vdevbuffer", 0xA4020000, 0x100000};

/// Parts of ethosu_region@A8000000 (128 MiB).
inline constexpr MemoryRange kEthosuRegion{"ethosu_region@A8000000", 0xA8000000, 0x8000000};
inline constexpr MemoryRange kNpuScratch{"NPU scratch and fast scratch", 0xA8000000, 0x1000000};
inline constexpr MemoryRange kPlannedBuffers{"planned buffers", 0xA9000000, 0x2000000};
inline constexpr MemoryRange kOutputCopies{"output copies", 0xAB000000, 0x100000};
inline constexpr MemoryRange kBigPrograms{"programs larger than the model region", 0xAC000000, 0x4000000};

/// Parts of model@c0000000 (4 MiB).
inline constexpr MemoryRange kModelRegion{"model@c0000000", 0xC0000000, 0x400000};
inline constexpr MemoryRange kProgram{"program (.pte)", 0xC0000000, 0x36C000};
inline constexpr MemoryRange kControlBlock{"control block", 0xC036C000, 0x1000};
inline constexpr MemoryRange kInputTensor{"input tensor", 0xC036D000, 0x93000};

/// Interrupt lines at the M33 (NVIC numbers).
inline constexpr unsigned kMessagingUnitIrq = 21;
inline constexpr unsigned kNpuIrq = 178;

namespace detail {
template <std::size_t N>
consteval bool disjoint(const std::array<MemoryRange, N>& ranges) {
    for (std::size_t i = 0; i < N; ++i)
        for (std::size_t j = i + 1; j < N; ++j)
            if (ranges_overlap(ranges[i].base, ranges[i].size, ranges[j].base, ranges[j].size)) return false;
    return true;
}
template <std::size_t N>
consteval bool inside(const MemoryRange& outer, const std::array<MemoryRange, N>& parts) {
    for (const auto& part : parts)
        if (!outer.contains(part.base, part.size)) return false;
    return true;
}
}  // namespace detail

inline constexpr std::array kEthosuParts{kNpuScratch, kPlannedBuffers, kOutputCopies, kBigPrograms};
inline constexpr std::array kModelParts{kProgram, kControlBlock, kInputTensor};
/// What must never overlap, whoever reads or writes it.
inline constexpr std::array kMemoryMap{
    kItcm,        kDtcm,    kOcram,        kMessagingUnitM33, kMessagingUnitLinux, kNpuRegisters,
    kVring0,      kVring1,  kVringBuffers, kNpuScratch,       kPlannedBuffers,     kOutputCopies,
    kBigPrograms, kProgram, kControlBlock, kInputTensor};

static_assert(detail::disjoint(kMemoryMap));
static_assert(detail::inside(kEthosuRegion, kEthosuParts) && detail::inside(kModelRegion, kModelParts));
static_assert(detail::inside(kDtcm, std::array{kLiveResourceTable, kTraceBuffer}));
static_assert(kInputTensor.size == 3 * 224 * 224 * 4 && kInputTensor.end() == kModelRegion.end());

}  // namespace talpa::link
