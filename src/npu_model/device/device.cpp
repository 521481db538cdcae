#include "npu_model/device/device.h"

#include <algorithm>
#include <vector>

#include "base/host/error.h"
#include "npu/extent.h"
#include "npu/registers_used.h"
#include "npu_model/cycles/network_cost.h"

namespace talpa::npu_model {

using namespace npu::reg;
namespace status = npu::status;
namespace cmd = npu::cmd;

namespace {

constexpr std::uint64_t kAddressMask = (std::uint64_t{1} << 40) - 1;

struct RegisterRow {
    std::uint32_t offset;
    npu::RegisterAccess access;
    std::uint32_t reset;
};
constexpr RegisterRow kRows[] = {
#define X(name, offset, access, reset) {offset, npu::RegisterAccess::access, reset},
    TALPA_NPU_REGISTERS(X)
#undef X
};

bool is_base(std::uint32_t offset) {
    return offset >= kBasep && offset < kBasep + 8 * npu::kRegionCount;
}

npu::AxiChannel channel_of(npu::Operand operand) {
    switch (operand) {
        case npu::Operand::Weights:
            return npu::AxiChannel::Weights;
        case npu::Operand::Scales:
            return npu::AxiChannel::Scales;
        case npu::Operand::DmaSource:
            return npu::AxiChannel::Mem2MemRead;
        case npu::Operand::DmaDestination:
            return npu::AxiChannel::Mem2MemWrite;
        case npu::Operand::Ofm:
            return npu::AxiChannel::OfmWrite;
        default:
            return npu::AxiChannel::Ifm;
    }
}

SystemConfig timing_of(std::uint32_t config) {
    SystemConfig system = default_system_config();
    if (const NpuConfig* npu = npu_config_of(config)) system.npu = *npu;
    return system;
}

}  // namespace

// A stream under way: its words as they were fetched, and how far the parser is.
struct RegisterDevice::Execution {
    std::vector<std::uint32_t> words;
    npu::CommandReader reader;
    npu::RegisterState state;
    SystemConfig timing;
    std::vector<npu::Operation> operations;  // for the timeline: what decodes of the stream
    NetworkCost cost;
    std::size_t next_operation = 0;
    std::uint64_t now = 0;
    std::uint32_t last_word = 0;
    std::array<npu::Region, npu::kRegionCount> regions{};

    Execution(std::vector<std::uint32_t> w, SystemConfig t) : words(std::move(w)), reader(words), timing(std::move(t)) {
        npu::Decoder decoder{words};
        while (true) {
            const auto op = decoder.next();
            if (!op || !*op) break;
            operations.push_back(**op);
        }
        cost = network_cost(operations, timing);
    }

    // The registers as they are, one operation and a STOP: what the functional model runs at a time.
    [[nodiscard]] std::vector<std::uint32_t> single(const npu::Operation& op) const {
        std::vector<std::uint32_t> one;
        for (const auto& r : npu::used_cmd0())
            if (state.written(r.code))
                one.push_back(static_cast<std::uint32_t>(r.code) | std::uint32_t{state.get(r.code)} << 16);
        for (const auto& r : npu::used_cmd1())
            if (state.written(r.code)) {
                const npu::Command& c = state.get(r.code);
                one.push_back(static_cast<std::uint32_t>(r.code) | 1u << 14 | std::uint32_t{c.parameter} << 16);
                one.push_back(c.payload);
            }
        one.push_back(npu::operation_word(op));
        one.push_back(0xFFFF0000);
        return one;
    }
};

// Holds the device; when it goes, tells the interrupt line's new level, if that changed, without the device's lock.
class RegisterDevice::Lock {
  public:
    explicit Lock(RegisterDevice& device) : device_(device), lock_(device.mutex_) {}
    ~Lock() {
        if (lock_.owns_lock()) lock_.unlock();
        const std::lock_guard order(device_.line_mutex_);
        bool level = false;
        {
            const std::lock_guard inner(device_.mutex_);
            level = (device_.status_ & status::kIrqRaised) != 0;
            if (level == device_.line_) return;
            device_.line_ = level;
        }
        if (device_.interrupt_) device_.interrupt_(level);
    }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    void unlock() { lock_.unlock(); }
    void lock() { lock_.lock(); }

  private:
    RegisterDevice& device_;
    std::unique_lock<std::mutex> lock_;
};

RegisterDevice::RegisterDevice(PhysicalMemory& memory, std::function<void(bool)> interrupt,
                               const DeviceOptions& options)
    : memory_(memory),
      interrupt_(std::move(interrupt)),
      options_(options),
      hardware_(npu::find_hardware(options.config)),
      model_(ModelOptions{.config = options.config,
                          .id = options.id,
                          .threads = options.threads,
                          .kernels = options.kernels,
                          .work_limit = options.work_limit,
                          .keeps_shared_ram = true}) {
    reset_locked(0);
}
RegisterDevice::~RegisterDevice() = default;

void RegisterDevice::reset_locked(std::uint32_t protection) {
    plain_.fill(0);
    for (const RegisterRow& row : kRows) plain(row.offset) = row.reset;
    status_ = 0;
    command_ = plain(CMD);
    qread_ = 0;
    protection_ = protection;
    pmu_.reset();
    execution_.reset();
    stop_requested_ = reset_pending_ = false;
    reset_reads_left_ = options_.reset_reads;
}

std::uint64_t RegisterDevice::address_at(std::uint32_t low) const {
    return (std::uint64_t{plain_[low / 4 + 1]} << 32 | plain_[low / 4]) & kAddressMask;
}

unsigned RegisterDevice::limit_set(unsigned region) const {
    return (plain_[REGIONCFG / 4] >> (2 * region)) & 3;
}

Result<std::uint32_t> RegisterDevice::read_register(std::uint32_t offset) {
    const Lock lock(*this);
    if (!powered_) return fail(ErrorCode::AccessFailed, "the NPU has no power: read of register {}", hex(offset));
    if (offset % 4 != 0 || offset >= npu::kRegisterSpaceBytes)
        return fail(ErrorCode::AccessFailed, "the NPU has no register at {}", hex(offset));
    return read_locked(offset);
}

Result<void> RegisterDevice::write_register(std::uint32_t offset, std::uint32_t value, BusMaster master) {
    const Lock lock(*this);
    if (!powered_) return fail(ErrorCode::AccessFailed, "the NPU has no power: write of register {}", hex(offset));
    if (offset % 4 != 0 || offset >= npu::kRegisterSpaceBytes)
        return fail(ErrorCode::AccessFailed, "the NPU has no register at {}", hex(offset));
    write_locked(offset, value, master);
    return {};
}

std::uint32_t RegisterDevice::read_locked(std::uint32_t offset) {
    const bool in_reset = reset_pending_ || reset_reads_left_ > 0;
    if (offset == STATUS) {
        if (reset_reads_left_ > 0) --reset_reads_left_;
        return in_reset ? status::kReset : status_;
    }
    if (in_reset) return 0;
    if (offset >= kShramWindow && offset < kShramWindow + 1024) {
        if (executing_) return 0;  // the banks are in use
        const auto ram = model_.shared_ram();
        const std::size_t at = std::size_t{plain_[DEBUG_ADDRESS / 4]} * 1024 + (offset - kShramWindow);
        return at + 4 <= ram.size() ? load_le<std::uint32_t>(ram.data() + at) : 0;
    }
    if (offset >= kCommandWindow && offset < kCommandWindowEnd) return command_register(offset);
    if (Pmu::covers(offset)) return pmu_.read(offset);
    switch (offset) {
        case ID:
            return options_.id;
        case CONFIG:
            return options_.config;
        case CMD:
            return command_;
        case QREAD:
        case CURRENT_QREAD:
            return qread_;
        case PROT:
            return protection_;
        case CURRENT_OP:
        case CURRENT_CMD:
            return execution_ ? execution_->last_word : 0;
        default:
            break;
    }
    if (is_base(offset)) return plain(offset);
    for (const RegisterRow& row : kRows)
        if (row.offset == offset) return row.access == npu::RegisterAccess::WriteOnly ? 0 : plain(offset);
    return 0;
}

// The command-stream registers as the parser last had them.
std::uint32_t RegisterDevice::command_register(std::uint32_t offset) const {
    if (!execution_) return 0;
    for (const auto& r : npu::used_cmd0())
        if (command_readback(static_cast<std::uint16_t>(r.code), false) == offset) return execution_->state.get(r.code);
    for (const auto& r : npu::used_cmd1()) {
        const std::uint32_t low = command_readback(static_cast<std::uint16_t>(r.code), true);
        if (low == offset) return execution_->state.get(r.code).payload;
        if (low + 4 == offset) return execution_->state.get(r.code).parameter;
    }
    return 0;
}

void RegisterDevice::write_locked(std::uint32_t offset, std::uint32_t value, BusMaster master) {
    if (offset == RESET) {
        // A master gives no more than it has: non-secure cannot make the NPU secure, user not privileged.
        const std::uint32_t protection = (master.privileged ? value & 1 : 0) | (master.secure ? value & 2 : 2);
        if (!executing_) {
            reset_locked(protection);
            return;
        }
        reset_pending_ = true;
        reset_protection_ = protection;
        return;
    }
    if (reset_pending_ || reset_reads_left_ > 0) return;
    if (Pmu::covers(offset)) {
        pmu_.write(offset, value);
        return;
    }
    if (offset == CMD) {
        write_command(value);
        return;
    }
    const bool running = (status_ & status::kRunning) != 0;
    if ((offset == QBASE0 || offset == QBASE1 || offset == QSIZE) && !running) {
        status_ &= ~status::kEndReached;
        qread_ = 0;
        execution_.reset();
    }
    if (is_base(offset)) {
        plain(offset) = value;
        return;
    }
    for (const RegisterRow& row : kRows)
        if (row.offset == offset && row.access == npu::RegisterAccess::ReadWrite) plain(offset) = value;
}

void RegisterDevice::write_command(std::uint32_t value) {
    command_ = value;
    if ((value & cmd::kClearIrq) != 0) status_ &= ~(status::kIrqRaised | status::kPmuIrqRaised);
    status_ &= ~(value & 0xFFFF0000);  // clear_irq_history stands where the history stands
    const bool running = (status_ & status::kRunning) != 0;
    if ((value & cmd::kStop) != 0 && running) stop_requested_ = true;
    // After an error only a reset helps.
    if ((value & cmd::kRun) != 0 && !running && (status_ & status::kErrors) == 0) {
        status_ |= status::kRunning;
        fault_.clear();
        work_.notify_all();
    }
    if (options_.forgets_when_gated && (value & cmd::kPowerQEnable) != 0 && (status_ & status::kRunning) == 0) {
        const std::uint32_t protection = protection_;
        reset_locked(protection);
    }
}

void RegisterDevice::set_powered(bool powered) {
    Lock lock(*this);
    if (powered_ == powered) return;
    powered_ = powered;
    if (!executing_) {
        reset_locked(0);
        return;
    }
    reset_pending_ = true;
    reset_protection_ = 0;
}

void RegisterDevice::stop_locked(std::uint32_t error_bits) {
    status_ &= ~status::kRunning;
    status_ |= status::kIrqRaised | error_bits;
}

void RegisterDevice::stop_locked(const Error& error, std::uint32_t error_bits) {
    fault_ = host::Error(error).message;
    stop_locked(error_bits);
}

void RegisterDevice::bus_fault_locked(const Error& error, npu::AxiChannel channel, unsigned port) {
    status_ &= ~(1u << status::kInterfaceShift | 0xFu << status::kChannelShift);
    stop_locked(error, status::kBusError | port << status::kInterfaceShift |
                           static_cast<std::uint32_t>(channel) << status::kChannelShift);
}

// Fetches the stream. The parser of the hardware reads as it goes; a stream that changes under a running NPU is a fault
// of the driver.
bool RegisterDevice::start_locked() {
    const std::uint64_t base = address_at(QBASE0);
    const std::uint32_t size = plain_[QSIZE / 4] & ~3u;
    const unsigned port = (plain_[QCONFIG / 4] & 3) >> 1;
    const auto bytes = memory_.at(base, port);
    if (base % 4 != 0 || bytes.size() < size) {
        bus_fault_locked(
            Error(ErrorCode::OutOfBounds, "the command stream of {} bytes at {} is not all in memory (AXI{})", size,
                  hex(base), port),
            npu::AxiChannel::Command, port);
        return false;
    }
    std::vector<std::uint32_t> words(size / 4);
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = load_le<std::uint32_t>(bytes.data() + 4 * i);
    SystemConfig timing = timing_of(options_.config);
    for (unsigned r = 0; r < npu::kRegionCount; ++r)
        timing.region_area[r] = limit_set(r) < 2 ? MemoryArea::Sram : MemoryArea::Dram;
    execution_ = std::make_unique<Execution>(std::move(words), std::move(timing));
    for (unsigned r = 0; r < npu::kRegionCount; ++r) {
        const auto region = memory_.at(address_at(kBasep + 8 * r), limit_set(r) >> 1);
        execution_->regions[r] = {region.empty() ? nullptr : region.data(), region.size()};
    }
    return true;
}

// Every byte of the operation must be in memory, on the port that its region uses.
bool RegisterDevice::check_reach_locked(const npu::Operation& op) {
    bool reached = true;
    npu::for_each_access(
        op,
        [&](const npu::Access& access, npu::Extent extent) {
            if (!reached || access.internal) return;
            const npu::Region& region = execution_->regions[access.region];
            if (extent.begin >= 0 && region.data != nullptr && static_cast<std::uint64_t>(extent.end) <= region.size)
                return;
            reached = false;
            const std::uint64_t base = address_at(kBasep + 8u * access.region);
            const unsigned port = limit_set(access.region) >> 1;
            bus_fault_locked(
                Error(ErrorCode::OutOfBounds,
                      "command stream offset {}: {} of region {} reaches from {} to {}, which is not all in memory",
                      op.offset_bytes, npu::axi_channel_name(static_cast<unsigned>(channel_of(access.operand))),
                      access.region, hex(base + static_cast<std::uint64_t>(extent.begin)),
                      hex(base + static_cast<std::uint64_t>(extent.end))),
                channel_of(access.operand), port);
        },
        (hardware_ != nullptr ? *hardware_ : npu::kU65_256).lut_base());
    return reached;
}

// Runs one block operation or DMA; the lock is open while it computes.
void RegisterDevice::perform(Lock& lock, const npu::Operation& op) {
    if (!check_reach_locked(op)) return;
    const std::vector<std::uint32_t> words = execution_->single(op);
    npu::Job job;
    job.stream = words;
    job.regions = execution_->regions;
    executing_ = true;
    lock.unlock();
    const auto result = model_.run(job);
    lock.lock();
    executing_ = false;
    if (reset_pending_) {
        reset_locked(reset_protection_);
        return;
    }
    if (result) return;
    // The model names the offset in the single operation's words; the stream's own is in front.
    Error error(result.error().code, "command stream offset {}: {} refused", op.offset_bytes,
                npu::op_kind_name(op.kind));
    const std::string why = host::Error(result.error()).message;
    switch (result.error().code) {
        case ErrorCode::WeightStream:
            stop_locked(error, status::kWeightFault);
            break;
        case ErrorCode::OutOfBounds:
            // What is left after check_reach_locked: region 0, which holds constants, would be written.
            bus_fault_locked(error,
                             op.kind == npu::OpKind::Dma ? npu::AxiChannel::Mem2MemWrite : npu::AxiChannel::OfmWrite,
                             limit_set(0) >> 1);
            break;
        default:
            stop_locked(error, status::kParseError);
            break;
    }
    fault_ += ": " + why;
}

bool RegisterDevice::step() {
    Lock lock(*this);
    if (!powered_ || (status_ & status::kRunning) == 0) return false;
    if (stop_requested_) {
        stop_requested_ = false;
        status_ &= ~status::kRunning;
        return true;
    }
    if (!execution_ && !start_locked()) return true;
    Execution& e = *execution_;
    while (true) {
        qread_ = e.reader.offset_bytes();
        const auto command = e.reader.next();
        if (!command) {
            stop_locked(command.error(), status::kParseError);
            return true;
        }
        if (!*command) {  // QSIZE reached without STOP
            stop_locked(status::kEndReached);
            return true;
        }
        if (!(*command)->is_operation()) {
            e.state.apply(**command);
            continue;
        }
        e.last_word = e.words[qread_ / 4];
        const auto op = e.state.resolve(**command);
        if (!op) {
            stop_locked(op.error(), status::kParseError);
            return true;
        }
        if (op->kind == npu::OpKind::Dma || npu::is_kernel(op->kind)) {
            perform(lock, *op);
            if ((status_ & status::kRunning) == 0) return true;  // a fault, or reset meanwhile
        }
        qread_ = e.reader.offset_bytes();
        if (e.next_operation < e.cost.operations.size()) {
            const ScheduledCost& done = e.cost.operations[e.next_operation++];
            if (op->kind == npu::OpKind::PmuMask) pmu_.set_mask(op->parameter != 0);
            pmu_.advance(done.end > e.now ? done.end - e.now : 0);
            e.now = std::max(e.now, done.end);
            pmu_.count(*op, done.cost);
        }
        if (op->kind == npu::OpKind::Stop || op->kind == npu::OpKind::Irq) {
            status_ |= status::kIrqRaised | std::uint32_t{op->parameter} << status::kHistoryShift;
            if (op->kind == npu::OpKind::Stop) stop_locked(status::kEndReached);
        }
        if (pmu_.interrupt()) status_ |= status::kIrqRaised | status::kPmuIrqRaised;
        return true;
    }
}

bool RegisterDevice::run_pending() {
    bool worked = false;
    while (step()) worked = true;
    return worked;
}

bool RegisterDevice::wait_for_work(std::chrono::milliseconds at_most) {
    std::unique_lock lock(mutex_);
    return work_.wait_for(lock, at_most, [&] { return powered_ && (status_ & status::kRunning) != 0; });
}

bool RegisterDevice::interrupt_line() const {
    const std::lock_guard lock(mutex_);
    return (status_ & status::kIrqRaised) != 0;
}

std::string RegisterDevice::fault_text() const {
    const std::lock_guard lock(mutex_);
    return fault_;
}

}  // namespace talpa::npu_model
