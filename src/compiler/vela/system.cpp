#include "compiler/vela/system.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <mutex>
#include <set>

#include "base/host/file.h"
#include "base/host/printable.h"

namespace talpa::compiler::vela {
namespace {

using host::Error;
using host::failure;
using host::Result;
using npu_model::MemoryArea;
using npu_model::SystemConfig;
using Settings = std::map<std::string, Setting>;

constexpr const char* kSystem = "System_Config.";
constexpr const char* kMode = "Memory_Mode.";
constexpr const char* kMemories[] = {"Sram", "Dram", "OnChipFlash", "OffChipFlash"};
// Of a memory NAME: NAME_clock_scale and so on. Those of the ports used are for NPUs with more ports than ours.
constexpr const char* kOfMemory[] = {"_clock_scale", "_burst_length", "_read_latency", "_write_latency",
                                     "_max_reads",   "_max_writes",   "_ports_used"};

/// The cycle model's tables name configurations by views of text that lives for ever; so must ours.
std::string_view for_ever(const std::string& name) {
    static std::mutex mutex;
    static std::set<std::string> names;
    const std::scoped_lock lock(mutex);
    return *names.insert(name).first;
}

std::unexpected<Error> wrong(const Setting& s, std::string_view wanted) {
    return failure(ErrorCode::InvalidExternalData, "{}: '{}' is not {}", s.where(),
                   host::printable(s.value.substr(0, 40)), wanted);
}

/// Reads what it is asked for and remembers what that was, so that the rest can be told.
class Reader {
  public:
    explicit Reader(Settings settings) : settings_(std::move(settings)) {}

    const Setting* find(const std::string& key) {
        const auto found = settings_.find(lower(key));
        known_.insert(lower(key));
        return found == settings_.end() ? nullptr : &found->second;
    }
    Result<double> number(const std::string& key, double standard, double least, double most) {
        const Setting* s = find(key);
        if (s == nullptr) return standard;
        double v = 0;
        const char* const begin = s->value.data() + (s->value.starts_with('+') ? 1 : 0);
        const auto [end, status] = std::from_chars(begin, s->value.data() + s->value.size(), v);
        if (status != std::errc() || end != s->value.data() + s->value.size() || !std::isfinite(v) || v < least ||
            v > most)
            return wrong(*s, fmt::format("a number from {:g} to {:g}", least, most));
        return v;
    }
    Result<std::uint32_t> whole(const std::string& key, std::uint32_t standard, std::uint32_t least,
                                std::uint32_t most) {
        TRY_ASSIGN(const std::uint64_t v, whole64(key, standard, least, most));
        return static_cast<std::uint32_t>(v);
    }
    Result<std::uint64_t> whole64(const std::string& key, std::uint64_t standard, std::uint64_t least,
                                  std::uint64_t most) {
        const Setting* s = find(key);
        if (s == nullptr) return standard;
        std::uint64_t v = 0;
        const auto [end, status] = std::from_chars(s->value.data(), s->value.data() + s->value.size(), v);
        if (status != std::errc() || end != s->value.data() + s->value.size() || v < least || v > most)
            return wrong(*s, fmt::format("a whole number from {} to {}", least, most));
        return v;
    }
    template <std::size_t N>
    Result<std::size_t> choice(const std::string& key, const char* const (&words)[N], std::size_t standard) {
        const Setting* s = find(key);
        if (s == nullptr) return standard;
        for (std::size_t i = 0; i < N; ++i)
            if (s->value == words[i]) return i;
        return wrong(*s, fmt::format("one of {}", fmt::join(words, ", ")));
    }
    void known(const std::string& key) { known_.insert(lower(key)); }
    void tell_unknown(std::vector<std::string>* warnings) const {
        if (warnings == nullptr) return;
        for (const auto& [key, s] : settings_)
            if (!known_.contains(key)) warnings->push_back(fmt::format("{}: nobody knows this key", s.where()));
    }

  private:
    Settings settings_;
    std::set<std::string> known_;
};

struct Ports {
    std::size_t memory[2];  ///< of kMemories, behind AXI0 and AXI1
};

Result<npu_model::MemoryTiming> timing_of(Reader& read, const std::string& memory, double axi_bytes) {
    constexpr std::uint32_t kLongest = 1 << 20;
    npu_model::MemoryTiming t;
    // A scale of 0 would be a memory that never answers.
    TRY_ASSIGN(const double scale, read.number(memory + "_clock_scale", 1, 1e-6, 1));
    t.bytes_per_cycle = axi_bytes * scale;
    TRY_ASSIGN(t.burst_bytes, read.whole(memory + "_burst_length", 1, 1, kLongest));
    TRY_ASSIGN(t.read_latency, read.whole(memory + "_read_latency", 0, 0, kLongest));
    TRY_ASSIGN(t.write_latency, read.whole(memory + "_write_latency", 0, 0, kLongest));
    TRY_ASSIGN(t.max_reads, read.whole(memory + "_max_reads", 0, 0, kLongest));
    TRY_ASSIGN(t.max_writes, read.whole(memory + "_max_writes", 0, 0, kLongest));
    return t;
}

/// Clock and memories of a file's section into `config`.
Result<Ports> apply_system(const Ini& ini, const std::string& name, SystemConfig& config,
                           std::vector<std::string>* warnings) {
    TRY_ASSIGN(auto settings, ini.settings(kSystem + name));
    Reader read(std::move(settings));
    for (const char* memory : kMemories)
        for (const char* what : kOfMemory) read.known(std::string(memory) + what);
    TRY_ASSIGN(config.clock_hz, read.number("core_clock", 1, 1, 1e12));
    Ports ports{};
    TRY_ASSIGN(ports.memory[0], read.choice("axi0_port", kMemories, 0));
    TRY_ASSIGN(ports.memory[1], read.choice("axi1_port", kMemories, 2));
    for (std::size_t port = 0; port < 2; ++port) {
        TRY_ASSIGN(config.memory[port], timing_of(read, kMemories[ports.memory[port]], config.npu.axi_bytes));
    }
    config.profile = for_ever(name);
    read.tell_unknown(warnings);
    return ports;
}

struct Areas {
    MemoryMode mode = MemoryMode::DedicatedSram;
    std::uint64_t sram_bytes = kUnlimited;
};

std::string where_or(const Setting* s, const std::string& otherwise) {
    return s != nullptr ? s->where() : otherwise;
}

Result<Areas> read_mode(const Ini& ini, const std::string& name, const Ports& ports,
                        std::vector<std::string>* warnings) {
    constexpr const char* kPorts[] = {"Axi0", "Axi1"};
    TRY_ASSIGN(auto settings, ini.settings(kMode + name));
    Reader read(std::move(settings));
    TRY_ASSIGN(const std::size_t constants, read.choice("const_mem_area", kPorts, 1));
    TRY_ASSIGN(const std::size_t arena, read.choice("arena_mem_area", kPorts, 0));
    TRY_ASSIGN(const std::size_t cache, read.choice("cache_mem_area", kPorts, 0));
    Areas areas;
    TRY_ASSIGN(areas.sram_bytes, read.whole64("arena_cache_size", kUnlimited, 1, kUnlimited));
    read.tell_unknown(warnings);
    const std::string section = fmt::format("[{}{}]", kMode, name);
    // The arena is written: it cannot be in flash.
    if (ports.memory[arena] > 1)
        return failure(ErrorCode::InvalidExternalData, "{}: the arena is written, but {} is {}",
                       where_or(read.find("arena_mem_area"), section + " arena_mem_area"), kPorts[arena],
                       kMemories[ports.memory[arena]]);
    if (arena == 0 && constants == 0)
        areas.mode = MemoryMode::SramOnly;
    else if (arena == 0)
        areas.mode = MemoryMode::SharedSram;
    else if (constants == 1 && cache == 0)
        areas.mode = MemoryMode::DedicatedSram;
    else
        return std::unexpected(Error(
            ErrorCode::NotSupported,
            fmt::format("{}: constants on {}, arena on {}, cache on {}",
                        where_or(read.find(constants == 0 ? "const_mem_area" : "cache_mem_area"), section),
                        kPorts[constants], kPorts[arena], kPorts[cache]),
            "An arena on Axi0 can have its constants on either port; one on Axi1 needs them there too, and a cache on "
            "Axi0."));
    if (areas.mode == MemoryMode::DedicatedSram && ports.memory[cache] != 0)
        return failure(ErrorCode::InvalidExternalData, "{}: the cache has to be in Sram, but {} is {}",
                       where_or(read.find("cache_mem_area"), section + " cache_mem_area"), kPorts[cache],
                       kMemories[ports.memory[cache]]);
    return areas;
}

/// "dedicated-sram", "Dedicated_Sram", "Dedicated_Sram_384KB".
std::optional<Areas> published_mode(const std::string& text) {
    std::string name = lower(text);
    std::ranges::replace(name, '-', '_');
    Areas areas{.mode = MemoryMode::DedicatedSram, .sram_bytes = 0};
    constexpr std::pair<const char*, std::uint64_t> kLimits[] = {{"_256kb", 256}, {"_384kb", 384}, {"_512kb", 512}};
    for (const auto& [ending, kib] : kLimits)
        if (name == std::string("dedicated_sram") + ending) {
            areas.sram_bytes = kib << 10;
            return areas;
        }
    for (const MemoryMode mode : {MemoryMode::SramOnly, MemoryMode::SharedSram, MemoryMode::DedicatedSram}) {
        areas.mode = mode;
        if (name == lower(memory_mode_name(mode))) return areas;
    }
    return std::nullopt;
}

bool is_u55(const std::string& npu) {
    return npu.starts_with("ethos-u55");
}

std::string_view usual_system(const std::string& npu) {
    return is_u55(npu) ? "Ethos_U55_High_End_Embedded" : "Ethos_U65_High_End";
}

/// What an NPU of the U55 family cannot have: its second port only reads (usually flash), and a U65's clocks.
Result<void> check_family(const TargetOptions& options, std::string_view system, MemoryMode mode) {
    const char* other = is_u55(options.npu) ? "Ethos_U65" : "Ethos_U55";
    if (system.starts_with(other))
        return std::unexpected(Error(ErrorCode::InvalidArgument,
                                     fmt::format("the system '{}' is not one of {}", system, options.npu),
                                     fmt::format("Its usual one is {}.", usual_system(options.npu))));
    if (is_u55(options.npu) && mode == MemoryMode::DedicatedSram)
        return std::unexpected(
            Error(ErrorCode::NotSupported,
                  fmt::format("{} has no dedicated-sram: its second port only reads, so the arena cannot lie behind it",
                              options.npu),
                  "Modes for it are shared-sram (constants behind the second port) and sram-only."));
    return {};
}

std::string listed(const std::vector<std::string>& names) {
    return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::string usual_mode(const std::string& npu) {
    return is_u55(npu) ? "shared-sram" : "dedicated-sram";
}

Result<Target> make_target(const TargetOptions& options, const Ini& ini, std::vector<std::string>* warnings) {
    const std::string system = options.system.empty() ? std::string(usual_system(options.npu)) : options.system;
    const std::string mode = options.memory_mode.empty() ? usual_mode(options.npu) : options.memory_mode;
    const bool own_system = ini.has(kSystem + system), own_mode = ini.has(kMode + mode);
    const auto published = published_mode(mode);
    if (!own_mode && !published)
        return std::unexpected(
            Error(ErrorCode::NotFound, fmt::format("there is no memory mode '{}'", mode),
                  fmt::format("Modes are sram-only, shared-sram and dedicated-sram; in the files: {}",
                              listed(ini.names(kMode)))));
    const MemoryMode standard = published ? published->mode : MemoryMode::DedicatedSram;
    auto target = compiler::make_target(options.npu, own_system ? std::string(usual_system(options.npu)) : system,
                                        standard, kUnlimited);
    if (!target) {
        if (!options.files.empty())
            target.error().hint += fmt::format("; in the files: {}", listed(ini.names(kSystem)));
        return target;
    }
    // What the published configurations have behind their ports.
    Ports ports{{0, 1}};
    if (own_system) {
        TRY_ASSIGN(ports, apply_system(ini, system, target->config, warnings));
        target->system = system;
    }
    Areas areas = published.value_or(Areas{});
    if (own_mode) {
        TRY_ASSIGN(areas, read_mode(ini, mode, ports, warnings));
        target->mode = areas.mode;
        // The cycle model's regions: 0 constants, 2 cache, all others the arena.
        auto& regions = target->config.region_area;
        regions.fill(areas.mode == MemoryMode::DedicatedSram ? MemoryArea::Dram : MemoryArea::Sram);
        regions[0] = areas.mode == MemoryMode::SramOnly ? MemoryArea::Sram : MemoryArea::Dram;
        regions[2] = MemoryArea::Sram;
        target->config.mode = for_ever(mode);
    }
    // By the name of the published table: what was typed may be a part of it, in any case.
    if (options.to_compile_for) TRY(check_family(options, own_system ? "" : target->config.profile, target->mode));
    constexpr std::uint64_t kUsual = 384 << 10;
    target->sram_bytes = options.sram_bytes != 0 ? options.sram_bytes
                         : areas.sram_bytes != 0 ? areas.sram_bytes
                                                 : kUsual;
    return target;
}

Result<Target> make_target(const TargetOptions& options, std::vector<std::string>* warnings) {
    Ini ini;
    for (const auto& file : options.files) {
        TRY_ASSIGN(const auto text, host::read_text(file, 1 << 20));
        TRY(ini.add(text, file.string()));
    }
    return make_target(options, ini, warnings);
}

}  // namespace talpa::compiler::vela
