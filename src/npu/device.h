// How a caller runs a command stream on an NPU, whichever it is: the functional model on a host, the register driver on
// the M33 (or on the simulated register device). Freestanding.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/core/error.h"
#include "npu/decoder.h"
#include "npu/hardware.h"
#include "npu/operation.h"

namespace talpa::npu {

/// Memory behind one base pointer. Region 0 (constants) must not be written; the device only reads it.
struct Region {
    std::uint8_t* data = nullptr;  ///< 16-byte aligned; null: the region is not set
    std::size_t size = 0;
};

/// One run of a stream. All memory belongs to the caller and lives until `run` returns.
struct Job {
    Words stream;  ///< 16-byte aligned, ends with STOP
    std::array<Region, kRegionCount> regions{};
    std::uint32_t config = 0;  ///< CONFIG word that the program was compiled for
    std::uint32_t id = 0;      ///< ID word likewise
    /// 0, or the caller's word that stream and region 0 never change while they carry this number, which no other
    /// memory in the process ever had: a device may keep what it worked out about them. Memory safety must not rest on
    /// it.
    std::uint64_t constant_id = 0;
};

struct JobStats {
    std::uint64_t cycles = 0;  ///< NPU cycles: measured by the PMU, or the cycle model's estimate; 0 if not known
};

class Device {
  public:
    /// CONFIG and ID as the hardware has them, to be compared with a program's (ethos-u65, section 2.4).
    [[nodiscard]] virtual std::uint32_t config() const = 0;
    [[nodiscard]] virtual std::uint32_t id() const = 0;
    /// Runs to the STOP. After an error the regions other than 0 hold unspecified bytes, nothing outside them was
    /// touched, and the device is ready for the next job.
    [[nodiscard]] virtual Result<JobStats> run(const Job& job) = 0;

  protected:
    ~Device() = default;
};

inline constexpr std::uint32_t kConfigU65_256 = kU65_256.config;
inline constexpr std::uint32_t kIdU65 = kU65_256.id;

}  // namespace talpa::npu
