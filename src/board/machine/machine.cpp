#include "board/machine/machine.h"

#include <algorithm>
#include <chrono>

#include "link/memory_map.h"
#include "npu/registers.h"

namespace talpa::board {

using namespace std::chrono_literals;

namespace {
constexpr std::uint64_t kCoreMhz = 200;
constexpr std::uint64_t kSlice = 200'000;  // instructions between two looks at stop requests
constexpr std::uint32_t kSecureAlias = 0x10000000;
constexpr std::uint64_t kLongestSleepUs = 100'000;
}  // namespace

/// The NPU's registers on the M33's bus: non-secure, unprivileged accesses are what the firmware asks for.
class Machine::NpuRegisters final : public cpu::Device {
  public:
    NpuRegisters(npu_model::RegisterDevice& device, bool powered, Tracer* tracer)
        : device_(device), powered_(powered), tracer_(tracer) {}
    bool read(cpu::u32 offset, unsigned size, cpu::u32& value) override {
        if (!powered_ || size != 4) return false;
        const auto read = device_.read_register(offset);
        if (!read) return false;
        value = *read;
        trace("reads", offset, value);
        return true;
    }
    bool write(cpu::u32 offset, unsigned size, cpu::u32 value) override {
        trace("writes", offset, value);
        return powered_ && size == 4 && device_.write_register(offset, value, {}).has_value();
    }

  private:
    void trace(const char* what, cpu::u32 offset, cpu::u32 value) const {
        if (tracer_ == nullptr || !tracer_->wants(TraceSource::Npu)) return;
        std::string name = fmt::format("0x{:03x}", offset);
#define X(register_name, at, access, reset) \
    if (offset == (at)) name = #register_name;
        TALPA_NPU_REGISTERS(X)
#undef X
        tracer_->line(TraceSource::Npu, "M33 {} {} = 0x{:08x}", what, name, value);
    }

    npu_model::RegisterDevice& device_;
    bool powered_;
    Tracer* tracer_;
};

/// What the NPU's ports reach: SRAM on port 0, DRAM on port 1; never the TCMs.
class Machine::NpuMemory final : public npu_model::PhysicalMemory {
  public:
    NpuMemory(MemoryFile& memory, bool denied) : memory_(memory), denied_(denied) {}
    std::span<std::uint8_t> at(std::uint64_t address, unsigned port) override {
        const bool dram = address >= 0x80000000;
        const bool ocram = address >= kOcramWindow.base && address - kOcramWindow.base < kOcramWindow.size;
        if ((!dram && !ocram) || (dram && denied_)) return {};
        return dram == (port == 1) ? memory_.rest(address) : std::span<std::uint8_t>{};
    }

  private:
    MemoryFile& memory_;
    bool denied_;
};

Machine::Machine(MemoryFile memory, const MachineOptions& options, KernelLog& log)
    : options_(options),
      log_(log),
      memory_(std::move(memory)),
      itcm_(memory_.window(link::kItcmSystem)),
      dtcm_(memory_.window(link::kDtcmSystem)),
      ocram_(memory_.window(kOcramWindow.base)),
      rings_(memory_.window(kRingsWindow.base)),
      ethosu_(memory_.window(link::kEthosuRegion.base)),
      model_(memory_.window(link::kModelRegion.base)) {}

host::Result<std::unique_ptr<Machine>> Machine::create(const MachineOptions& options, KernelLog& log) {
    TRY_ASSIGN(auto memory, MemoryFile::create(options.memory_file));
    std::unique_ptr<Machine> machine(new Machine(std::move(memory), options, log));
    TRY(machine->wire());
    return machine;
}

host::Result<void> Machine::wire() {
    // Silicon gives no zeros after power-up; what Linux does not load and the firmware does not clear reads as this.
    itcm_.poison();
    dtcm_.poison();
    if (options_.tcm_ecc) {
        itcm_.require_initialisation();
        dtcm_.require_initialisation();
    }
    core_ = std::make_unique<cpu::Cpu>(bus_);
    npu_memory_ = std::make_unique<NpuMemory>(memory_, options_.npu_denied);
    npu_model::DeviceOptions npu_options;
    npu_options.threads = options_.npu_threads;
    npu_ = std::make_unique<npu_model::RegisterDevice>(
        *npu_memory_,
        [this](bool level) {
            if (options_.tracer != nullptr)
                options_.tracer->line(TraceSource::Npu, "interrupt line {}", level ? "up" : "down");
            if (level) npu_rests();  // before anybody can see the job's end
            core_->set_irq(link::kNpuIrq, level);
        },
        npu_options);
    npu_->set_powered(options_.npu_powered);
    npu_registers_ = std::make_unique<NpuRegisters>(*npu_, options_.npu_powered, options_.tracer);
    npu_hangs_ = options_.npu_hangs;
    messaging_unit_ = std::make_unique<MessagingUnit>(
        [this](bool level) { core_->set_irq(link::kMessagingUnitIrq, level); }, [this] { received_(); });

    messaging_unit_->trace_to(options_.tracer);

    const auto ram = [&](std::string_view name, std::uint32_t base, std::uint32_t size, cpu::Ram& memory,
                         std::uint32_t alias) -> host::Result<void> {
        TRY(bus_.add_ram(name, base, size, memory));
        if (alias != 0) TRY(bus_.add_ram(name, alias, size, memory));
        return {};
    };
    TRY(ram("code TCM", link::kItcm.base, link::kItcm.size, itcm_, link::kItcm.base + kSecureAlias));
    TRY(ram("data TCM", link::kDtcm.base, link::kDtcm.size, dtcm_, link::kDtcm.base + kSecureAlias));
    TRY(ram("OCRAM", kOcramWindow.base, kOcramWindow.size, ocram_, 0));
    TRY(ram("rings", kRingsWindow.base, kRingsWindow.size, rings_, 0));
    TRY(ram("ethosu_region", link::kEthosuRegion.base, link::kEthosuRegion.size, ethosu_, 0));
    TRY(ram("model", link::kModelRegion.base, link::kModelRegion.size, model_, link::kModelRegion.base + kSecureAlias));
    for (const std::uint32_t alias : {0u, kSecureAlias}) {
        TRY(bus_.add_device("MU1 side A", link::kMessagingUnitM33.base + alias, 0x1000, *messaging_unit_));
        TRY(bus_.add_device("Ethos-U65", link::kNpuRegisters.base + alias, 0x1000, *npu_registers_));
    }
    core_thread_ = std::thread([this] { run_core(); });
    npu_thread_ = std::thread([this] { run_npu(); });
    return {};
}

Machine::~Machine() {
    stop();
    {
        const std::lock_guard lock(mutex_);
        ending_ = true;
    }
    changed_.notify_all();
    core_thread_.join();
    npu_thread_.join();
}

void Machine::start(std::uint32_t boot_address) {
    if (!options_.mu_survives_stop) messaging_unit_->reset();
    {
        const std::lock_guard lock(mutex_);
        // Kernels that pass no address leave the one that the secure firmware assumes.
        boot_address_ = boot_address != 0 ? boot_address : link::kItcm.base;
        boot_ = true;
        released_ = true;
        parked_ = false;
    }
    changed_.notify_all();
}

void Machine::loaded(std::uint64_t address, std::size_t size) {
    for (const auto& [base, tcm] : {std::pair{link::kItcmSystem, &itcm_}, std::pair{link::kDtcmSystem, &dtcm_}})
        if (address >= base && range_inside(address - base, size, tcm->bytes().size()))
            tcm->note_written(address - base, size);
}

// A fault's handler on this chip ends nowhere: the core sleeps in it, or has locked up.
void Machine::look_for_fault(bool locked_up) {
    if (!options_.faulted || fault_told_) return;
    constexpr std::uint32_t kExceptionMask = 0x1FF, kHardFault = 3, kLastFault = 7;
    const std::uint32_t exception = core_->registers().xpsr & kExceptionMask;
    if (!locked_up && (exception < kHardFault || exception > kLastFault)) return;
    fault_told_ = true;
    options_.faulted();
}

void Machine::stop() {
    std::unique_lock lock(mutex_);
    if (!released_) return;
    released_ = false;
    core_->request_stop();
    changed_.notify_all();
    changed_.wait(lock, [this] { return parked_; });
}

void Machine::run_core() {
    using Clock = std::chrono::steady_clock;
    std::unique_lock lock(mutex_);
    while (!ending_) {
        if (!released_) {
            parked_ = true;
            changed_.notify_all();
            changed_.wait(lock, [this] { return ending_ || released_; });
            continue;
        }
        if (boot_) {
            boot_ = false;
            fault_told_ = false;
            core_->code_changed();
            core_->reset(boot_address_);
        }
        if (debug_halt_) {
            halt_locked(lock);
            continue;
        }
        const bool step = debug_step_;
        lock.unlock();
        const std::uint64_t executed = core_->instructions();
        const cpu::Stop why = core_->run(step ? 1 : kSlice);
        instructions_ = core_->instructions();
        switch (why) {
            case cpu::Stop::Sleeping: {
                look_for_fault(false);
                // Sleep lasts until an interrupt or the next tick, in wall-clock time, so that the firmware's
                // milliseconds are ours.
                const std::uint64_t cycles = core_->cycles_until_timer();
                const std::uint64_t us = std::min(cycles / kCoreMhz + 1, kLongestSleepUs);
                const auto before = Clock::now();
                core_->wait(us);
                const auto slept = static_cast<std::uint64_t>(
                    std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - before).count());
                core_->skip(std::min(cycles, slept * kCoreMhz / 1000));
                break;
            }
            case cpu::Stop::Lockup:
                log_.line("board: the M33 is locked up at pc 0x{:08x}", core_->pc());
                look_for_fault(true);
                lock.lock();
                debug_reason_ = Halt::Lockup;
                debug_halt_ = debug_halt_ || debug_attached_;
                changed_.wait(lock, [this] { return ending_ || !released_ || debug_halt_; });
                lock.unlock();
                break;
            case cpu::Stop::Reset:
                log_.line("board: the M33 reset itself (SYSRESETREQ)");
                break;
            case cpu::Stop::Breakpoint:
                lock.lock();
                debug_halt_ = true;
                debug_reason_ = Halt::Breakpoint;
                lock.unlock();
                break;
            case cpu::Stop::Limit:
            case cpu::Stop::Requested:
            case cpu::Stop::Bkpt:
                break;
        }
        lock.lock();
        if (step && debug_step_ && core_->instructions() != executed) {
            if (!debug_halt_) debug_reason_ = Halt::Stepped;
            debug_halt_ = true;
        }
    }
}

void Machine::halt_locked(std::unique_lock<std::mutex>& lock) {
    debug_step_ = false;
    while (debug_halt_ && released_ && !ending_) {
        debug_halted_ = true;
        changed_.notify_all();
        // Let go and halted again before this thread woke: the debugger waits to hear of the second halt too.
        changed_.wait(lock, [this] { return ending_ || !released_ || !debug_halt_ || !debug_halted_; });
    }
    debug_halted_ = false;
}

void Machine::debug_halt() {
    std::unique_lock lock(mutex_);
    if (!debug_halt_) debug_reason_ = Halt::Requested;
    debug_halt_ = debug_attached_ = true;
    core_->set_event();  // halting ends a sleep, as on silicon
    core_->request_stop();
    changed_.notify_all();
    changed_.wait(lock, [this] { return debug_halted_ || !released_ || ending_; });
}

void Machine::debug_resume(bool step) {
    const std::lock_guard lock(mutex_);
    debug_halt_ = false;
    debug_halted_ = false;
    debug_step_ = step;
    debug_reason_ = Halt::Requested;
    changed_.notify_all();
}

void Machine::debug_detach() {
    debug_resume(false);
    const std::lock_guard lock(mutex_);
    debug_attached_ = false;
}

std::optional<Halt> Machine::debug_wait(std::chrono::milliseconds at_most) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, at_most, [this] { return debug_halted_ || (debug_halt_ && parked_ && !released_); }))
        return std::nullopt;
    return debug_halted_ ? debug_reason_ : Halt::HeldByLinux;
}

void Machine::npu_rests() {
    const std::int64_t since = npu_since_.exchange(0);
    if (since != 0) npu_nanoseconds_ += std::chrono::steady_clock::now().time_since_epoch().count() - since;
}

void Machine::run_npu() {
    std::unique_lock lock(mutex_);
    while (!ending_) {
        // Nobody else starts the NPU, so it costs nothing while the M33 is held.
        changed_.wait(lock, [this] { return ending_ || released_; });
        if (ending_) break;
        lock.unlock();
        if (npu_hangs_) {
            std::this_thread::sleep_for(1ms);
        } else if (npu_->wait_for_work(50ms) && !npu_hangs_) {
            npu_since_ = std::chrono::steady_clock::now().time_since_epoch().count();
            npu_->run_pending();
            npu_rests();
        }
        lock.lock();
    }
}

}  // namespace talpa::board
