// Any text as a configuration file: every section that it has, as system and as memory mode. What is accepted must be a
// machine that the cycle model can reckon with.
#include <cmath>
#include <cstdlib>

#include "compiler/vela/system.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace talpa::compiler;
    vela::Ini ini;
    if (!ini.add({reinterpret_cast<const char*>(data), size}, "fuzz.ini")) return 0;
    auto systems = ini.names("System_Config."), modes = ini.names("Memory_Mode.");
    systems.emplace_back("Ethos_U65_High_End");
    modes.emplace_back("dedicated-sram");
    if (systems.size() * modes.size() > 400) return 0;
    for (const auto& system : systems)
        for (const auto& mode : modes) {
            const auto target = vela::make_target({.system = system, .memory_mode = mode, .files = {}}, ini);
            if (!target) continue;
            if (!(target->config.clock_hz >= 1) || target->sram_bytes == 0) std::abort();
            for (const auto& memory : target->config.memory)
                if (!(memory.bytes_per_cycle > 0) || memory.burst_bytes == 0) std::abort();
        }
    return 0;
}
