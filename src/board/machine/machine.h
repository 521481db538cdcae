// The hardware of the virtual i.MX 93 as one object: memory, Cortex-M33, Messaging Unit, NPU, each on its own thread
// where it has one. Linux's side (remoteproc) drives it by CoreControl, Mailbox and SystemMemory.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "board/cpu/bus.h"
#include "board/cpu/cpu.h"
#include "board/devices/messaging_unit.h"
#include "board/linux/kernel_log.h"
#include "board/linux/platform.h"
#include "board/linux/tracer.h"
#include "board/machine/memory_file.h"
#include "npu_model/device/device.h"

namespace talpa::board {

struct MachineOptions {
    std::filesystem::path memory_file;  ///< empty: anonymous
    unsigned npu_threads = 2;
    bool npu_powered = true;       ///< false: the first access to the NPU's registers is a bus error
    bool mu_survives_stop = true;  ///< as on silicon; false: a start finds the Messaging Unit empty
    bool npu_hangs = false;        ///< the NPU takes jobs and never finishes one
    bool npu_denied = false;       ///< the bus firewall keeps the NPU out of DDR: each access is a bus error
    bool tcm_ecc = false;          ///< reading TCM that nobody has written is a bus error
    /// The M33 is in a fault handler that does not end, or locked up: once a start, on the M33's thread. Null: nobody
    /// asks.
    std::function<void()> faulted;
    Tracer* tracer = nullptr;
};

/// Why the core stands still for a debugger.
enum class Halt : std::uint8_t { Requested, Stepped, Breakpoint, Lockup, HeldByLinux };

class Machine final : public CoreControl {
  public:
    [[nodiscard]] static host::Result<std::unique_ptr<Machine>> create(const MachineOptions& options, KernelLog& log);
    ~Machine();

    void start(std::uint32_t boot_address) override;
    void stop() override;
    void loaded(std::uint64_t address, std::size_t size) override;

    [[nodiscard]] SystemMemory& memory() { return memory_; }
    [[nodiscard]] Mailbox& mailbox() { return *messaging_unit_; }
    /// Before the first start. What it calls must live until the core has been stopped for the last time.
    void on_mailbox(std::function<void()> received) { received_ = std::move(received); }

    /// Instructions that the M33 has executed since power-up.
    [[nodiscard]] std::uint64_t instructions() const { return instructions_.load(); }
    /// Wall-clock time from the starts of jobs to their interrupts.
    [[nodiscard]] std::chrono::nanoseconds npu_time() const {
        return std::chrono::nanoseconds(npu_nanoseconds_.load());
    }
    /// From now on the NPU takes jobs and never finishes one, or does again.
    void set_npu_hangs(bool hangs) { npu_hangs_ = hangs; }

    // For one debugger. Unused, it costs nothing: the core's thread looks only where it takes its lock anyway.
    /// False when another debugger has it already; `debug_release` ends it.
    [[nodiscard]] bool debug_claim() { return !debug_claimed_.exchange(true); }
    void debug_release() { debug_claimed_ = false; }
    /// Makes the core stand still between two instructions and returns then; while Linux holds it in reset, so that it
    /// will stand before its first one.
    void debug_halt();
    /// Lets it go on, for one instruction (`step`) or until it halts again.
    void debug_resume(bool step);
    /// The debugger goes; the core runs on.
    void debug_detach();
    /// Waits until it stands still, at most that long; why it does, or nothing.
    [[nodiscard]] std::optional<Halt> debug_wait(std::chrono::milliseconds at_most);
    /// The core, while it stands still for the debugger.
    [[nodiscard]] cpu::Cpu& debug_core() { return *core_; }

  private:
    class NpuRegisters;
    class NpuMemory;
    Machine(MemoryFile memory, const MachineOptions& options, KernelLog& log);
    [[nodiscard]] host::Result<void> wire();
    void run_core();
    void look_for_fault(bool locked_up);
    void run_npu();
    void npu_rests();
    void halt_locked(std::unique_lock<std::mutex>& lock);

    MachineOptions options_;
    KernelLog& log_;
    MemoryFile memory_;
    std::function<void()> received_ = [] {};

    cpu::Ram itcm_, dtcm_, ocram_, rings_, ethosu_, model_;
    cpu::Bus bus_;
    std::unique_ptr<cpu::Cpu> core_;
    std::unique_ptr<NpuMemory> npu_memory_;
    std::unique_ptr<npu_model::RegisterDevice> npu_;
    std::unique_ptr<NpuRegisters> npu_registers_;
    std::unique_ptr<MessagingUnit> messaging_unit_;

    std::mutex mutex_;
    std::condition_variable changed_;
    bool released_ = false;  ///< the core runs
    bool parked_ = true;     ///< its thread has noticed that it does not
    std::uint32_t boot_address_ = 0;
    bool boot_ = false;
    bool fault_told_ = false;  ///< since the last start
    bool debug_halt_ = false;  ///< a debugger wants it to stand still
    bool debug_attached_ = false;
    bool debug_halted_ = false;  ///< it does
    bool debug_step_ = false;    ///< … after one more instruction
    Halt debug_reason_ = Halt::Requested;
    std::atomic<bool> debug_claimed_{false};
    std::atomic<bool> npu_hangs_{false};
    std::atomic<std::int64_t> npu_nanoseconds_{0}, npu_since_{0};  ///< 0: it rests
    std::atomic<bool> ending_{false};
    std::atomic<std::uint64_t> instructions_{0};
    std::thread core_thread_, npu_thread_;
};

}  // namespace talpa::board
