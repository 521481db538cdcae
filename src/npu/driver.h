// Bare-metal driver of an Ethos-U55/U65: reset, configuration, jobs, faults, recovery. It knows registers and nothing
// of the board: power, caches, interrupt and addresses are asked of a RegisterBus, which on the M33 is the chip and on
// a host the simulated device. Freestanding. (ethos-u65, section 2.4; pte-format, section 8)
#pragma once

#include <array>
#include <cstdint>

#include "base/core/byte_reader.h"
#include "base/core/error.h"
#include "npu/device.h"

namespace talpa::npu {

/// The NPU's registers, and what a board does around them. The defaults suit a part without caches, whose power is
/// always on and which sees memory as the CPU does.
class RegisterBus {
  public:
    /// `offset` is a multiple of 4 below 4 KiB.
    [[nodiscard]] virtual std::uint32_t read32(std::uint32_t offset) = 0;
    virtual void write32(std::uint32_t offset, std::uint32_t value) = 0;

    /// Returns true when the interrupt line is (or becomes) active within the time, false otherwise. May return true
    /// too early: the driver looks at STATUS.
    [[nodiscard]] virtual bool wait_for_interrupt(std::uint32_t timeout_ms) = 0;
    /// Why it returned false, when that was not because the time was over; a constant.
    [[nodiscard]] virtual const char* gave_up() { return nullptr; }

    /// Power domain and clocks on, before a job; off, after it. Registers need not survive in between.
    [[nodiscard]] virtual Result<void> power_on() { return {}; }
    virtual void power_off() {}
    /// Before a job: what the CPU wrote must be in memory. After it: what the NPU wrote must not be hidden by a cache.
    virtual void clean_cache(Bytes memory) { static_cast<void>(memory); }
    virtual void invalidate_cache(Bytes memory) { static_cast<void>(memory); }
    /// All writes before it are visible to the NPU before any after it.
    virtual void barrier() {}
    /// The address at which the NPU sees `pointer`.
    [[nodiscard]] virtual std::uint64_t npu_address(const void* pointer) {
        return reinterpret_cast<std::uintptr_t>(pointer);
    }
    /// Port and limit set (REGIONCFG, 0..3) for a region at that NPU address; `usual` is the option's.
    [[nodiscard]] virtual unsigned region_config(unsigned region, std::uint64_t address, unsigned usual) {
        static_cast<void>(region);
        static_cast<void>(address);
        return usual;
    }
    /// Told once for each fault, with STATUS, QREAD and the reason, before the NPU is reset.
    virtual void fault(const Error& error) { static_cast<void>(error); }

  protected:
    ~RegisterBus() = default;
};

/// One AXI_LIMIT register (ethos-u65, section 2.2).
struct AxiLimit {
    std::uint8_t burst = 0;                ///< 0: 64 bytes, 1: 128, 2: 256
    std::uint8_t memory_type = 0;          ///< AxCACHE: 0 device non-bufferable … 3 normal non-cacheable bufferable …
    std::uint8_t outstanding_reads = 64;   ///< 1..64
    std::uint8_t outstanding_writes = 32;  ///< 1..32
    [[nodiscard]] constexpr std::uint32_t word() const {
        return burst | (memory_type & 0xFu) << 4 | (outstanding_reads - 1u) << 16 | (outstanding_writes - 1u) << 24;
    }
};

struct DriverOptions {
    std::uint32_t config = kConfigU65_256;  ///< the part that must be there: product and MACs are compared
    bool privileged = true, secure = true;  ///< state to ask of the NPU; PROT must say the same
    std::uint8_t queue_config = 2;          ///< QCONFIG: limit set that fetches the command stream
    /// REGIONCFG by region: constants and arena in DRAM (sets 2 and 3 are port AXI1), fast scratch in SRAM.
    std::array<std::uint8_t, kRegionCount> region_config{3, 2, 1, 1, 1, 1, 1, 1};
    std::array<AxiLimit, 4> axi_limits{};
    std::uint32_t timeout_ms = 10'000;    ///< of one job
    std::uint32_t reset_polls = 100'000;  ///< reads of STATUS until a reset counts as hung
    bool measure_cycles = true;           ///< use the PMU's cycle counter
};

/// One NPU. Not for two threads at a time.
class Driver final : public Device {
  public:
    explicit Driver(RegisterBus& bus, const DriverOptions& options = {}) : bus_(bus), options_(options) {}

    /// Powers the NPU, resets it and looks at what it is; call once before the first job (a job does it otherwise).
    /// Errors: Timeout (stuck in reset), DelegateIncompatible (another part, or nothing that answers), InvalidState
    /// (PROT).
    [[nodiscard]] Result<void> initialise();

    /// What the hardware said at the last reset; 0 before `initialise`.
    [[nodiscard]] std::uint32_t config() const override { return config_; }
    [[nodiscard]] std::uint32_t id() const override { return id_; }

    /// Errors, besides those of `initialise`: DelegateIncompatible (NPU config match, NPU arch match), InvalidArgument
    /// (stream or region not 16-byte aligned, no stream, stream of 16 MiB or more, address beyond 40 bits), NpuFault
    /// (bus_status_error, cmd_parse_error, wd_fault, ecc_fault, no cmd_end_reached), Timeout. After a fault the NPU has
    /// been reset and takes the next job.
    [[nodiscard]] Result<JobStats> run(const Job& job) override;

    /// STATUS and QREAD as they were when the last job ended.
    [[nodiscard]] std::uint32_t last_status() const { return last_status_; }
    [[nodiscard]] std::uint32_t last_qread() const { return last_qread_; }

  private:
    [[nodiscard]] Result<void> reset();
    [[nodiscard]] Result<void> check_job(const Job& job);
    void program(const Job& job);
    [[nodiscard]] Result<void> wait();
    [[nodiscard]] Result<void> judge();
    [[nodiscard]] Result<JobStats> run_powered(const Job& job);

    RegisterBus& bus_;
    DriverOptions options_;
    std::uint32_t config_ = 0, id_ = 0;
    std::uint32_t last_status_ = 0, last_qread_ = 0;
};

}  // namespace talpa::npu
