#include "npu_model/device/pmu.h"

namespace talpa::npu_model {

namespace {

using namespace npu::reg;

constexpr std::uint64_t kCycleMask = (std::uint64_t{1} << 48) - 1;
constexpr std::uint32_t kControlBits = npu::pmu::kEnable | npu::pmu::kMaskEnable;

// Events whose count an operation's estimate gives; cycles and activity are counted by `advance`. 16 bytes a beat.
std::uint64_t event_count(std::uint32_t event, const npu::Operation& op, const OperationCost& cost) {
    const bool kernel = npu::is_kernel(op.kind);
    const auto traffic = [&](MemoryArea area) { return cost.in(area); };
    switch (event) {
        case 0x30:
            return cost.mac_cycles;
        case 0x31:
            return op.ifm.type.bytes == 1 ? cost.mac_cycles : 0;
        case 0x32:
            return op.ifm.type.bytes == 2 ? cost.mac_cycles : 0;
        case 0x38:
            return op.ifm.type.bytes == 4 ? cost.mac_cycles : 0;
        case 0x34:
        case 0x35:
            return kernel ? cost.weight_cycles - cost.mac_cycles : 0;
        case 0x40:
            return cost.output_cycles;
        case 0x41:
            return op.ofm.type.bytes == 1 ? cost.output_cycles : 0;
        case 0x42:
            return op.ofm.type.bytes == 2 ? cost.output_cycles : 0;
        case 0x82:
            return traffic(MemoryArea::Sram).bus_read_bytes / 16;
        case 0x87:
            return traffic(MemoryArea::Sram).bus_write_bytes / 16;
        case 0x182:
            return traffic(MemoryArea::Dram).bus_read_bytes / 16;
        case 0x187:
            return traffic(MemoryArea::Dram).bus_write_bytes / 16;
        default:
            return 0;
    }
}

bool counts_time(std::uint32_t event) {
    return event == 0x11 || event == 0x23;
}

}  // namespace

bool Pmu::covers(std::uint32_t offset) {
    return (offset >= PMCR && offset <= PMCAXI_CHAN) ||
           (offset >= kPmevcntr && offset < kPmevcntr + 4 * kEventCounters) ||
           (offset >= kPmevtyper && offset < kPmevtyper + 4 * kEventCounters);
}

std::uint32_t Pmu::read(std::uint32_t offset) const {
    if (offset >= kPmevtyper) return events_[(offset - kPmevtyper) / 4];
    if (offset >= kPmevcntr) return counters_[(offset - kPmevcntr) / 4];
    switch (offset) {
        case PMCR:
            return control_ | kEventCounters << 11;
        case PMCNTENSET:
        case PMCNTENCLR:
            return enable_;
        case PMOVSSET:
        case PMOVSCLR:
            return overflow_;
        case PMINTSET:
        case PMINTCLR:
            return interrupt_enable_;
        case PMCCNTR_LO:
            return static_cast<std::uint32_t>(cycles_);
        case PMCCNTR_HI:
            return static_cast<std::uint32_t>(cycles_ >> 32);
        case PMCCNTR_CFG:
            return cycle_config_;
        case PMCAXI_CHAN:
            return axi_channel_;
        default:
            return 0;
    }
}

void Pmu::write(std::uint32_t offset, std::uint32_t value) {
    if (offset >= kPmevtyper) {
        events_[(offset - kPmevtyper) / 4] = value & 0x3FF;
        return;
    }
    if (offset >= kPmevcntr) {
        counters_[(offset - kPmevcntr) / 4] = value;
        return;
    }
    switch (offset) {
        case PMCR:
            control_ = value & kControlBits;
            if ((value & npu::pmu::kResetEvents) != 0) counters_.fill(0);
            if ((value & npu::pmu::kResetCycles) != 0) cycles_ = 0;
            break;
        case PMCNTENSET:
            enable_ |= value & kSets;
            break;
        case PMCNTENCLR:
            enable_ &= ~value;
            break;
        case PMOVSSET:
            overflow_ |= value & kSets;
            break;
        case PMOVSCLR:
            overflow_ &= ~value;
            break;
        case PMINTSET:
            interrupt_enable_ |= value & kSets;
            break;
        case PMINTCLR:
            interrupt_enable_ &= ~value;
            break;
        case PMCCNTR_LO:
            cycles_ = (cycles_ & ~std::uint64_t{0xFFFFFFFF}) | value;
            break;
        case PMCCNTR_HI:
            cycles_ = (std::uint64_t{value & 0xFFFF} << 32) | (cycles_ & 0xFFFFFFFF);
            break;
        case PMCCNTR_CFG:
            cycle_config_ = value & 0x03FF03FF;
            break;
        case PMCAXI_CHAN:
            axi_channel_ = value & 0x70F;
            break;
        default:
            break;
    }
}

bool Pmu::counting() const {
    if ((control_ & npu::pmu::kEnable) == 0) return false;
    return !(masked_ && (control_ & npu::pmu::kMaskEnable) != 0);
}

void Pmu::add(std::size_t counter, std::uint64_t amount) {
    const std::uint64_t sum = counters_[counter] + amount;
    if (sum > UINT32_MAX) overflow_ |= 1u << counter;
    counters_[counter] = static_cast<std::uint32_t>(sum);
}

void Pmu::advance(std::uint64_t cycles) {
    if (!counting()) return;
    if ((enable_ & npu::pmu::kCycleCounter) != 0) {
        if (cycles > kCycleMask - cycles_) overflow_ |= npu::pmu::kCycleCounter;
        cycles_ = (cycles_ + cycles) & kCycleMask;
    }
    for (std::size_t i = 0; i < counters_.size(); ++i)
        if ((enable_ >> i & 1) != 0 && counts_time(events_[i])) add(i, cycles);
}

void Pmu::count(const npu::Operation& op, const OperationCost& cost) {
    if (!counting()) return;
    for (std::size_t i = 0; i < counters_.size(); ++i)
        if ((enable_ >> i & 1) != 0) add(i, event_count(events_[i], op, cost));
}

}  // namespace talpa::npu_model
