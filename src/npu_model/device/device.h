// An Ethos-U at the level of its registers: what a driver sees of the functional model. The virtual board maps it at
// 0x4A900000, tests put the bare-metal driver on it. It executes command streams from physical memory and, like the
// hardware, knows nothing of a program's region sizes: an access outside mapped memory is a bus fault. (ethos-u65,
// sections 2.2 to 2.5)
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "npu/hardware.h"
#include "npu/registers.h"
#include "npu_model/device/pmu.h"
#include "npu_model/model.h"

namespace talpa::npu_model {

/// Memory as the NPU reaches it. Called from the thread that runs the device.
class PhysicalMemory {
  public:
    /// The bytes from `address` to the end of the mapped range that holds it, on AXI port 0 or 1; empty if that port
    /// has nothing there. They stay where they are while the device exists.
    [[nodiscard]] virtual std::span<std::uint8_t> at(std::uint64_t address, unsigned port) = 0;

  protected:
    ~PhysicalMemory() = default;
};

/// Who accesses a register.
struct BusMaster {
    bool secure = true, privileged = true;
};

struct DeviceOptions {
    std::uint32_t config = npu::kConfigU65_256;
    std::uint32_t id = npu::kIdU65;
    unsigned threads = 1;
    Kernels kernels = Kernels::Fast;
    std::uint64_t work_limit = ModelOptions{}.work_limit;  ///< of one operation; more is refused as an illegal command
    std::uint32_t reset_reads = 0;                         ///< reads of STATUS that still show a reset in progress
    /// With CMD's power_q_enable set and nothing running, the part powers down and forgets its registers.
    bool forgets_when_gated = false;
};

/// Registers may be accessed from any thread; one thread at a time calls `step`, `run_pending` and `wait_for_work`.
class RegisterDevice {
  public:
    /// `interrupt` is called with the new level of the line whenever it changes, on the thread that caused it, with no
    /// lock held.
    RegisterDevice(PhysicalMemory& memory, std::function<void(bool)> interrupt, const DeviceOptions& options = {});
    ~RegisterDevice();
    RegisterDevice(const RegisterDevice&) = delete;
    RegisterDevice& operator=(const RegisterDevice&) = delete;

    /// AccessFailed, a bus fault for whoever asked: no power, not a multiple of 4, beyond 4 KiB.
    [[nodiscard]] Result<std::uint32_t> read_register(std::uint32_t offset);
    [[nodiscard]] Result<void> write_register(std::uint32_t offset, std::uint32_t value, BusMaster master = {});

    /// Power domain and clock. Without them nothing answers; registers are lost. On at first.
    void set_powered(bool powered);

    /// Executes one operation of a running stream. False: nothing to do.
    bool step();
    /// Steps until nothing is left to do. True if there was something.
    bool run_pending();
    /// Waits until there is work, at most that long. For the thread that runs the device.
    bool wait_for_work(std::chrono::milliseconds at_most);

    [[nodiscard]] bool interrupt_line() const;
    /// Why the last stream ended badly, for a log; empty if it did not.
    [[nodiscard]] std::string fault_text() const;

  private:
    struct Execution;
    class Lock;

    [[nodiscard]] std::uint32_t read_locked(std::uint32_t offset);
    void write_locked(std::uint32_t offset, std::uint32_t value, BusMaster master);
    void write_command(std::uint32_t value);
    void reset_locked(std::uint32_t protection);
    void stop_locked(std::uint32_t error_bits);
    void stop_locked(const Error& error, std::uint32_t error_bits);
    void bus_fault_locked(const Error& error, npu::AxiChannel channel, unsigned port);
    [[nodiscard]] std::uint32_t& plain(std::uint32_t offset) { return plain_[offset / 4]; }
    [[nodiscard]] std::uint64_t address_at(std::uint32_t low) const;
    [[nodiscard]] unsigned limit_set(unsigned region) const;
    [[nodiscard]] std::uint32_t command_register(std::uint32_t offset) const;

    bool start_locked();
    void perform(Lock& lock, const npu::Operation& op);
    [[nodiscard]] bool check_reach_locked(const npu::Operation& op);

    PhysicalMemory& memory_;
    std::function<void(bool)> interrupt_;
    DeviceOptions options_;
    const npu::Hardware* hardware_;
    Model model_;

    mutable std::mutex mutex_;
    std::recursive_mutex line_mutex_;  // orders the calls of interrupt_
    std::condition_variable work_;
    bool line_ = false;  // what interrupt_ was last told

    bool powered_ = true;
    bool executing_ = false;      // an operation is under way, without the lock
    bool reset_pending_ = false;  // … and a reset waits for its end
    std::uint32_t reset_protection_ = 0;
    std::uint32_t reset_reads_left_ = 0;
    bool stop_requested_ = false;
    std::uint32_t status_ = 0, command_ = 0xC, qread_ = 0, protection_ = 0;
    std::array<std::uint32_t, npu::kRegisterSpaceBytes / 4> plain_{};  // registers that only hold what was written
    Pmu pmu_;
    std::unique_ptr<Execution> execution_;
    std::string fault_;
};

}  // namespace talpa::npu_model
