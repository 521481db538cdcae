#include "npu/driver.h"

#include "npu/cop.h"
#include "npu/hardware.h"
#include "npu/registers.h"

namespace talpa::npu {

namespace {

constexpr std::uint64_t kAddressEnd = std::uint64_t{1} << 40;
constexpr std::size_t kMaxStreamBytes = 16u << 20;

// Powers down again however a job ends.
class Powered {
  public:
    explicit Powered(RegisterBus& bus) : bus_(bus) {}
    ~Powered() {
        bus_.write32(reg::CMD, cmd::kKept);  // clock and power may be gated
        bus_.power_off();
    }
    Powered(const Powered&) = delete;
    Powered& operator=(const Powered&) = delete;

  private:
    RegisterBus& bus_;
};

}  // namespace

// Resets, and checks that the part answers, is the right one and has taken the state that was asked for.
Result<void> Driver::reset() {
    const std::uint32_t wanted = (options_.privileged ? 1u : 0u) | (options_.secure ? 0u : 2u);
    bus_.write32(reg::RESET, wanted);
    std::uint32_t polls = 0;
    while ((bus_.read32(reg::STATUS) & status::kReset) != 0)
        if (++polls >= options_.reset_polls)
            return fail(ErrorCode::Timeout, "the NPU stayed in reset for {} reads of STATUS", polls);
    config_ = bus_.read32(reg::CONFIG);
    id_ = bus_.read32(reg::ID);
    if (config_ == 0 || config_ == 0xFFFFFFFF)
        return fail(ErrorCode::DelegateIncompatible,
                    "no NPU answers: CONFIG reads {}. Are its power domain and clocks on?", hex(config_));
    const ConfigWord present{config_}, expected{options_.config};
    if (present.product() != expected.product() || present.macs_log2() != expected.macs_log2())
        return fail(ErrorCode::DelegateIncompatible, "NPU config match: this driver is for {}-{}, this NPU is an {}-{}",
                    product_name(expected.product()), expected.macs(), product_name(present.product()), present.macs());
    const std::uint32_t prot = bus_.read32(reg::PROT) & 3;
    if (prot != wanted)
        return fail(
            ErrorCode::InvalidState,
            "NPU PROT reads {} where {} was asked for: this CPU may not give the NPU that privilege or security", prot,
            wanted);
    // A reset cleared all of these; until CMD is written the NPU stays awake.
    bus_.write32(reg::QCONFIG, options_.queue_config);
    for (std::uint32_t i = 0; i < options_.axi_limits.size(); ++i)
        bus_.write32(reg::AXI_LIMIT0 + 4 * i, options_.axi_limits[i].word());
    bus_.write32(reg::CMD, 0);  // no gating while jobs run: the NPU may lose its registers
    return {};
}

Result<void> Driver::initialise() {
    TRY(bus_.power_on());
    const Powered powered(bus_);
    return reset();
}

Result<void> Driver::check_job(const Job& job) {
    if (job.config != 0) TRY(match_config(job.config, job.id, config_, id_));
    const std::size_t size = job.stream.size() * 4;
    if (size == 0) return fail(ErrorCode::InvalidArgument, "the job has no command stream");
    if (size >= kMaxStreamBytes)
        return fail(ErrorCode::InvalidArgument, "a command stream of {} bytes: the NPU takes less than {}", size,
                    kMaxStreamBytes);
    const std::uint64_t stream = bus_.npu_address(job.stream.data());
    if (stream % 16 != 0 || stream + size > kAddressEnd)
        return fail(ErrorCode::InvalidArgument,
                    "the command stream at NPU address {}: not 16-byte aligned or beyond 40 bits", hex(stream));
    for (unsigned i = 0; i < kRegionCount; ++i) {
        if (job.regions[i].data == nullptr) continue;
        const std::uint64_t base = bus_.npu_address(job.regions[i].data);
        if (base % 16 != 0 || base > kAddressEnd || job.regions[i].size > kAddressEnd - base)
            return fail(ErrorCode::InvalidArgument,
                        "region {} at NPU address {}, {} bytes: not 16-byte aligned or beyond 40 bits", i, hex(base),
                        job.regions[i].size);
    }
    return {};
}

void Driver::program(const Job& job) {
    const auto address = [&](std::uint32_t low, std::uint64_t value) {
        bus_.write32(low, static_cast<std::uint32_t>(value));
        bus_.write32(low + 4, static_cast<std::uint32_t>(value >> 32));
    };
    address(reg::QBASE0, bus_.npu_address(job.stream.data()));
    bus_.write32(reg::QSIZE, static_cast<std::uint32_t>(job.stream.size() * 4));
    std::uint32_t region_config = 0;
    for (unsigned i = 0; i < kRegionCount; ++i) {
        const Region& region = job.regions[i];
        const std::uint64_t base = region.data == nullptr ? 0 : bus_.npu_address(region.data);
        address(reg::kBasep + 8 * i, base);
        const unsigned usual = options_.region_config[i];
        region_config |= ((region.data == nullptr ? usual : bus_.region_config(i, base, usual)) & 3u) << (2 * i);
    }
    bus_.write32(reg::REGIONCFG, region_config);
    if (options_.measure_cycles) {
        bus_.write32(reg::PMCR, pmu::kEnable | pmu::kResetEvents | pmu::kResetCycles);
        bus_.write32(reg::PMCCNTR_CFG, 0);
        bus_.write32(reg::PMCNTENSET, pmu::kCycleCounter);
    }
}

// Until the NPU stands still; interrupts of IRQ commands and spurious ones are passed over.
Result<void> Driver::wait() {
    // No stream has more IRQ commands than words; beyond that the line does not obey CMD.
    for (std::uint32_t i = 0; i < kMaxStreamBytes / 4; ++i) {
        const bool interrupted = bus_.wait_for_interrupt(options_.timeout_ms);
        if (interrupted) bus_.write32(reg::CMD, (bus_.read32(reg::CMD) & cmd::kKept) | cmd::kClearIrq);
        last_status_ = bus_.read32(reg::STATUS);
        last_qread_ = bus_.read32(reg::QREAD);
        if (interrupted && (last_status_ & status::kRunning) == 0) return {};
        if (interrupted) continue;
        if ((last_status_ & status::kRunning) == 0)
            return fail(ErrorCode::Timeout,
                        "the NPU stopped (STATUS {}) but no interrupt came within {} ms: is its line enabled?",
                        hex(last_status_), options_.timeout_ms);
        if (const char* const why = bus_.gave_up(); why != nullptr)
            return fail(ErrorCode::Timeout, "the NPU was stopped at command stream offset {} (STATUS {}): {}",
                        last_qread_, hex(last_status_), why);
        return fail(ErrorCode::Timeout, "the NPU still runs after {} ms, at command stream offset {} (STATUS {})",
                    options_.timeout_ms, last_qread_, hex(last_status_));
    }
    return fail(ErrorCode::Timeout, "the NPU's interrupt does not go away (STATUS {})", hex(last_status_));
}

Result<void> Driver::judge() {
    const std::uint32_t s = last_status_;
    constexpr auto kCode = ErrorCode::NpuFault;
    if ((s & status::kBusError) != 0)
        return fail(kCode, "bus_status_error: the {} on AXI{} was refused, command stream offset {} (STATUS {})",
                    axi_channel_name(status::faulting_channel(s)), status::faulting_interface(s), last_qread_, hex(s));
    if ((s & status::kParseError) != 0)
        return fail(kCode, "cmd_parse_error: illegal command, command stream offset {} (STATUS {})", last_qread_,
                    hex(s));
    if ((s & status::kWeightFault) != 0)
        return fail(kCode, "wd_fault: the weight decoder met an illegal stream, command stream offset {} (STATUS {})",
                    last_qread_, hex(s));
    if ((s & status::kEccFault) != 0)
        return fail(kCode, "ecc_fault: the NPU's internal RAM lost a bit, command stream offset {} (STATUS {})",
                    last_qread_, hex(s));
    if ((s & status::kEndReached) == 0)
        return fail(kCode, "the NPU stopped without cmd_end_reached, command stream offset {} (STATUS {})", last_qread_,
                    hex(s));
    return {};
}

Result<JobStats> Driver::run_powered(const Job& job) {
    const Powered powered(bus_);
    TRY(reset());
    TRY(check_job(job));
    bus_.clean_cache({reinterpret_cast<const std::uint8_t*>(job.stream.data()), job.stream.size() * 4});
    for (const Region& region : job.regions)
        if (region.data != nullptr) bus_.clean_cache({region.data, region.size});
    program(job);
    bus_.barrier();
    bus_.write32(reg::CMD, (bus_.read32(reg::CMD) & cmd::kKept) | cmd::kRun);

    auto outcome = wait();
    if (outcome) outcome = judge();
    bus_.barrier();
    for (std::size_t i = 1; i < job.regions.size(); ++i)  // region 0 holds constants
        if (job.regions[i].data != nullptr) bus_.invalidate_cache({job.regions[i].data, job.regions[i].size});
    if (!outcome) {
        bus_.fault(outcome.error());
        // Error bits, and a stream that never ends, go away only so. The first error is the one to tell.
        if (const auto recovered = reset(); !recovered) bus_.fault(recovered.error());
        return std::unexpected(outcome.error());
    }
    JobStats stats;
    if (options_.measure_cycles) {  // before power goes, and with it the counters
        const std::uint32_t low = bus_.read32(reg::PMCCNTR_LO);
        stats.cycles = std::uint64_t{bus_.read32(reg::PMCCNTR_HI) & 0xFFFF} << 32 | low;
    }
    return stats;
}

Result<JobStats> Driver::run(const Job& job) {
    last_status_ = last_qread_ = 0;
    TRY(bus_.power_on());
    return run_powered(job);
}

}  // namespace talpa::npu
