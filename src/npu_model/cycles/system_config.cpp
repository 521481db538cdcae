#include "npu_model/cycles/system_config.h"

#include <algorithm>
#include <cctype>
#include <iterator>

namespace talpa::npu_model {
namespace {

// Section 8.3, which says that the legacy compiler exchanged the two 32-bit columns; here one operand is the cheaper
// case, as in the compiler's successor. The other rows are from the same published tables.
constexpr NpuConfig::OutputRates kOutput32{2.0, 3.0, 3.0, 3.0, 4.0, 6.0, 1.0, 2.0};
constexpr NpuConfig::OutputRates kOutput64{1.0, 1.5, 1.5, 1.5, 2.0, 3.0, 0.5, 1.0};
constexpr NpuConfig::OutputRates kOutput128{0.75, 1.25, 0.75, 0.75, 1.0, 1.5, 0.25, 0.5};
constexpr NpuConfig::OutputRates kOutput256{0.625, 1.125, 0.5, 0.375, 0.5, 0.75, 0.125, 0.25};
constexpr NpuConfig::OutputRates kOutput512{0.3125, 0.5625, 0.25, 0.1875, 0.25, 0.375, 0.0625, 0.125};

constexpr NpuConfig::ActivationRates kTable1{1.0, 1.0, 0.0}, kTable128{1.0, 0.5, 0.0}, kTable256{1.0, 0.25, 0.0},
    kTable512{0.5, 0.125, 0.0};

// In the order of npu::kHardware.
constexpr NpuConfig kNpus[] = {
    {&npu::kHardware[0], 8, kOutput32, kTable1},     {&npu::kHardware[1], 8, kOutput64, kTable1},
    {&npu::kHardware[2], 8, kOutput128, kTable128},  {&npu::kHardware[3], 8, kOutput256, kTable256},
    {&npu::kHardware[4], 16, kOutput256, kTable256}, {&npu::kHardware[5], 16, kOutput512, kTable512},
};
static_assert(std::size(kNpus) == npu::kHardware.size());

// Section 8.4. "Dram" of the embedded profiles is flash.
constexpr SystemProfile kProfiles[] = {
    // name                          clock  sram  dram      sram  latency r/w  max r/w
    {"Ethos_U65_High_End", 1e9, 1.0, 0.234375, 16, 500, 250, 24, 12},
    {"Ethos_U65_Client_Server", 1e9, 1.0, 0.75, 16, 500, 250, 24, 12},
    {"Ethos_U65_Mid_End", 500e6, 1.0, 0.46875, 8, 500, 250, 12, 6},
    {"Ethos_U65_Embedded", 500e6, 1.0, 0.0625, 8, 64, 0, 2, 0},
    {"Ethos_U55_High_End_Embedded", 500e6, 1.0, 0.125, 4, 64, 0, 2, 0},
    {"Ethos_U55_Deep_Embedded", 200e6, 1.0, 0.0625, 8, 64, 0, 2, 0},
};

constexpr MemoryMode kModes[] = {
    {"Dedicated_Sram", MemoryArea::Dram, MemoryArea::Dram, MemoryArea::Sram},
    {"Shared_Sram", MemoryArea::Dram, MemoryArea::Sram, MemoryArea::Sram},
    {"Sram_Only", MemoryArea::Sram, MemoryArea::Sram, MemoryArea::Sram},
};

constexpr std::uint32_t kSramBurst = 32, kDramBurst = 128, kSramLatency = 32;

bool same_name(std::string_view a, std::string_view b) {
    return std::ranges::equal(a, b,
                              [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

bool names_profile(const SystemProfile& profile, std::string_view name) {
    constexpr std::size_t kPrefix = std::string_view("Ethos_U65_").size();
    return same_name(profile.name, name) || same_name(profile.name.substr(kPrefix), name);
}

// "Dedicated_Sram", and "Dedicated_Sram_384KB": the same with a limit on the cache, which changes no cost.
bool names_mode(const MemoryMode& mode, std::string_view name) {
    if (name.size() > mode.name.size() && name[mode.name.size()] == '_' && name.ends_with("KB"))
        name = name.substr(0, mode.name.size());
    return same_name(mode.name, name);
}

}  // namespace

const char* memory_area_name(MemoryArea area) {
    return area == MemoryArea::Sram ? "SRAM" : "DRAM";
}

double MemoryTiming::sustained_read() const {
    if (read_latency == 0 || max_reads == 0) return bytes_per_cycle;
    return std::min(bytes_per_cycle, static_cast<double>(max_reads) * burst_bytes / read_latency);
}

std::span<const SystemProfile> system_profiles() {
    return kProfiles;
}

std::optional<SystemConfig> system_config(std::string_view npu, std::string_view profile, std::string_view mode) {
    const auto n = std::ranges::find_if(kNpus, [&](const NpuConfig& c) { return same_name(c.hardware->name, npu); });
    const auto p = std::ranges::find_if(kProfiles, [&](const SystemProfile& c) { return names_profile(c, profile); });
    const auto m = std::ranges::find_if(kModes, [&](const MemoryMode& c) { return names_mode(c, mode); });
    if (n == std::end(kNpus) || p == std::end(kProfiles) || m == std::end(kModes)) return std::nullopt;

    SystemConfig config;
    config.npu = *n;
    config.profile = p->name;
    config.mode = m->name;
    config.clock_hz = p->clock_hz;
    config.memory[index(MemoryArea::Sram)] = {
        n->axi_bytes * p->sram_scale, kSramBurst, kSramLatency, kSramLatency, p->sram_outstanding, p->sram_outstanding};
    config.memory[index(MemoryArea::Dram)] = {n->axi_bytes * p->dram_scale, kDramBurst,        p->dram_read_latency,
                                              p->dram_write_latency,        p->dram_max_reads, p->dram_max_writes};
    config.region_area.fill(m->arena);
    config.region_area[0] = m->constants;
    config.region_area[2] = m->cache;
    return config;
}

const SystemConfig& default_system_config() {
    static const SystemConfig config = *system_config("ethos-u65-256", "High_End", "Dedicated_Sram");
    return config;
}

const NpuConfig* npu_config_of(std::uint32_t config_word) {
    const npu::Hardware* hardware = npu::find_hardware(config_word);
    for (const NpuConfig& c : kNpus)
        if (c.hardware == hardware) return &c;
    return nullptr;
}

}  // namespace talpa::npu_model
