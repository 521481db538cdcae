// System configurations and memory modes of Vela's files as targets of ours: clock, the memory behind each AXI port,
// and where constants, arena and cache lie. (ethos-u65, section 8.4; Vela's OPTIONS.md, "Configuration File")
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "compiler/schedule/target.h"
#include "compiler/vela/ini.h"

namespace talpa::compiler::vela {

struct TargetOptions {
    std::string npu = "ethos-u65-256";
    std::string system{};       ///< "Ethos_U65_High_End", or a [System_Config.NAME]; empty: the NPU's usual one
    std::string memory_mode{};  ///< "dedicated-sram", "Dedicated_Sram_384KB", or a [Memory_Mode.NAME]; empty: the NPU's
                                ///< usual one
    /// Of SRAM, a hard limit; 0: what the memory mode says, else 384 KiB.
    std::uint64_t sram_bytes = 0;
    std::vector<std::filesystem::path> files{};  ///< .ini, later ones add to earlier ones
    /// What the NPU's family cannot have is refused; not where a program that exists is only reckoned with.
    bool to_compile_for = true;
};

/// Names are looked up in the files first, then among the published ones. What a file does not say is what Vela takes:
/// scale 1, bursts of 1, no latency, SRAM on AXI0, flash on AXI1; constants on AXI1, arena and cache on AXI0; no limit
/// of SRAM. Errors name file, section and key. `warnings`: keys that nobody knows.
[[nodiscard]] host::Result<Target> make_target(const TargetOptions& options,
                                               std::vector<std::string>* warnings = nullptr);
/// The same with the files' text already in `ini`.
[[nodiscard]] host::Result<Target> make_target(const TargetOptions& options, const Ini& ini,
                                               std::vector<std::string>* warnings = nullptr);

/// The memory mode of an NPU for which none is asked for, as Vela's: "shared-sram" for a U55, else "dedicated-sram".
[[nodiscard]] std::string usual_mode(const std::string& npu);

}  // namespace talpa::compiler::vela
