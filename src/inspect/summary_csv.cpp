#include "inspect/summary_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace talpa::inspect {
namespace {

using npu_model::MemoryArea;

/// "ethos-u65-256" as "Ethos_U65_256".
std::string accelerator(std::string name) {
    bool first = true;
    for (char& c : name) {
        if (first) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
        first = c == '-';
        if (c == '-') c = '_';
    }
    return name;
}

std::string cell(std::string text) {
    std::ranges::replace_if(text, [](unsigned char c) { return c < 0x20 || c == ',' || c == '"'; }, '_');
    return text;
}

}  // namespace

std::string summary_csv(const Report& report, const std::string& network) {
    const MethodReport& method = report.main_method();
    npu_model::SystemConfig config = npu_model::default_system_config();
    std::string npu = config.npu.hardware->name;
    std::uint64_t cycles = 0, npu_cycles = 0, macs = 0, encoded = 0, original = 0;
    std::array<std::uint64_t, npu_model::kMemoryAreas> used{}, moved{}, access{};
    for (const DelegateReport& d : method.delegates) {
        if (!d.network) continue;
        config = d.config;
        npu = d.npu.empty() ? npu : d.npu;
        const auto& cost = d.network->cost;
        cycles += cost.cycles_total;
        npu_cycles += cost.npu_cycles;
        macs += cost.macs;
        for (const Layer& l : d.network->layers) encoded += l.weight_bytes, original += l.raw_weight_bytes;
        // Memory is what the largest delegate needs; constants are there all the time.
        std::array<std::uint64_t, npu_model::kMemoryAreas> needs{};
        needs[npu_model::index(config.area_of(1))] += d.scratch_bytes;
        if (!d.fast_is_scratch) needs[npu_model::index(config.area_of(2))] += d.fast_scratch_bytes;
        for (std::size_t a = 0; a < used.size(); ++a) {
            used[a] = std::max(used[a], needs[a]);
            moved[a] += cost.traffic[a].bus_bytes();
            access[a] += cost.memory_cycles[a];
        }
    }
    std::array<std::uint64_t, npu_model::kMemoryAreas> constants{};
    for (const DelegateReport& d : method.delegates) constants[npu_model::index(config.area_of(0))] += d.constant_bytes;
    const auto kib = [&](MemoryArea area) {
        return static_cast<double>(used[npu_model::index(area)] + constants[npu_model::index(area)]) / 1024;
    };
    const auto gib = [&](MemoryArea area) { return config.timing(area).bytes_per_cycle * config.clock_hz / (1 << 30); };
    const double seconds = config.seconds(cycles);
    const auto sram = npu_model::index(MemoryArea::Sram), dram = npu_model::index(MemoryArea::Dram);
    const std::pair<const char*, std::string> columns[] = {
        {"experiment", "default"},
        {"network", cell(network)},
        {"accelerator_configuration", accelerator(npu)},
        {"system_config", cell(std::string(config.profile))},
        {"memory_mode", cell(std::string(config.mode))},
        {"core_clock", fmt::format("{:.1f}", config.clock_hz)},
        {"sram_bandwidth", fmt::format("{}", gib(MemoryArea::Sram))},
        {"dram_bandwidth", fmt::format("{}", gib(MemoryArea::Dram))},
        {"weights_storage_area", npu_model::memory_area_name(config.area_of(0))},
        {"feature_map_storage_area", npu_model::memory_area_name(config.area_of(1))},
        {"inferences_per_second", fmt::format("{}", seconds > 0 ? 1 / seconds : 0.0)},
        {"batch_size", "1"},
        {"inference_time", fmt::format("{}", seconds)},
        {"sram_memory_used", fmt::format("{}", kib(MemoryArea::Sram))},
        {"dram_memory_used", fmt::format("{}", kib(MemoryArea::Dram))},
        {"total_original_weights", fmt::format("{}", original)},
        {"total_npu_encoded_weights", fmt::format("{}", encoded)},
        {"sram_total_bytes", fmt::format("{}", moved[sram])},
        {"dram_total_bytes", fmt::format("{}", moved[dram])},
        {"nn_macs", fmt::format("{}", macs)},
        {"nn_tops", fmt::format("{}", seconds > 0 ? 2 * static_cast<double>(macs) / seconds / 1e12 : 0.0)},
        {"cycles_npu", fmt::format("{}", npu_cycles)},
        {"cycles_sram_access", fmt::format("{}", access[sram])},
        {"cycles_dram_access", fmt::format("{}", access[dram])},
        {"cycles_total", fmt::format("{}", cycles)},
    };
    std::string names, values;
    for (const auto& [name, value] : columns) {
        names += fmt::format("{}{}", names.empty() ? "" : ",", name);
        values += fmt::format("{}{}", values.empty() ? "" : ",", value);
    }
    return names + "\n" + values + "\n";
}

}  // namespace talpa::inspect
