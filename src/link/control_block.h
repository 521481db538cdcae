// The control block in the model region: how Linux tells the firmware what it staged, and how the firmware shows its
// state to a Linux that cannot ask (dead link, fault). Little-endian words. (imx93-remoteproc, section 10)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace talpa::link {

inline constexpr std::uint32_t kControlMagic = 0x31525445;  // "ETR1"
inline constexpr std::uint32_t kControlVersion = 1;
inline constexpr std::size_t kMaxInputs = 4;
inline constexpr std::size_t kMaxOutputs = 8;

/// Words 0C: what the firmware is doing.
enum class RunnerState : std::uint32_t { Boot = 0, Idle = 1, Loading = 2, Running = 3, Done = 4, Error = 5, Fault = 6 };

/// A staged range. `offset` below 80000000 counts from the model region, else it is a physical address. The entry
/// counts only when `length` is not 0; a CRC of 0 means unchecked.
struct StagedRange {
    std::uint32_t offset;
    std::uint32_t length;
    std::uint32_t crc32;
};

struct FaultRecord {
    std::uint32_t kind, pc, lr, cfsr, hfsr, bfar, mmfar, sp;
    std::array<std::uint32_t, 8> reserved;
};

struct OutputRange {
    std::uint32_t address;
    std::uint32_t length;
};

struct ControlBlock {
    // Written by the M33
    std::uint32_t magic;           // 00, at start
    std::uint32_t version;         // 04
    std::uint32_t firmware_build;  // 08: CRC-32 of the version text
    std::uint32_t state;           // 0C: RunnerState
    std::uint32_t heartbeat;       // 10: +1 every 10 ms
    std::uint32_t last_error;      // 14: RunnerError
    std::uint32_t run_sequence;    // 18
    std::uint32_t reserved_1c;
    // Written by Linux
    StagedRange program;  // 20
    std::uint32_t reserved_2c;
    std::uint32_t input_count;       // 30
    StagedRange inputs[kMaxInputs];  // 34..63
    std::array<std::uint32_t, 7> reserved_64;
    // Written by the M33
    FaultRecord fault;               // 80..BF
    std::uint32_t request_sequence;  // C0: by Linux; a bare RUN uses the block when it changed
    std::array<std::uint32_t, 6> reserved_c4;
    std::uint32_t output_count;        // DC
    OutputRange outputs[kMaxOutputs];  // E0..11F
};

static_assert(offsetof(ControlBlock, program) == 0x20 && offsetof(ControlBlock, input_count) == 0x30);
static_assert(offsetof(ControlBlock, inputs) == 0x34 && offsetof(ControlBlock, fault) == 0x80);
static_assert(offsetof(ControlBlock, request_sequence) == 0xC0 && offsetof(ControlBlock, output_count) == 0xDC);
static_assert(offsetof(ControlBlock, outputs) == 0xE0 && sizeof(ControlBlock) == 0x120);

}  // namespace talpa::link
