#include "compiler/schedule/target.h"

namespace talpa::compiler {

const char* memory_mode_name(MemoryMode mode) {
    static constexpr const char* kNames[] = {"Sram_Only", "Shared_Sram", "Dedicated_Sram"};
    return kNames[static_cast<std::size_t>(mode)];
}

host::Result<Target> make_target(const std::string& npu, const std::string& system, MemoryMode mode,
                                 std::uint64_t sram_bytes) {
    const auto config = npu_model::system_config(npu, system, memory_mode_name(mode));
    if (!config) {
        std::string known;
        for (const npu::Hardware& h : npu::kHardware) known += (known.empty() ? "" : ", ") + std::string(h.name);
        std::string systems;
        for (const auto& p : npu_model::system_profiles())
            systems += (systems.empty() ? "" : ", ") + std::string(p.name);
        return std::unexpected(host::Error(ErrorCode::NotFound,
                                           fmt::format("no target '{}' with system '{}'", npu, system),
                                           fmt::format("targets are {}; systems are {}", known, systems)));
    }
    Target t;
    t.npu = npu;
    t.system = system;
    t.mode = mode;
    t.sram_bytes = sram_bytes;
    t.config = *config;
    t.hardware = config->npu.hardware;
    return t;
}

}  // namespace talpa::compiler
