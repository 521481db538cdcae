// Is this file firmware that the core could run? Asked before the kernel gets it, because the kernel's own answer is
// "invalid argument". Bounded reads only; nothing of the file is trusted.
// (remoteproc-runtime, section 14-31; imx93-remoteproc, sections 1.2 and 1.3)
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "remoteproc/sysfs/device.h"

namespace talpa::remoteproc {

/// A file as the checks see it.
struct FirmwareBytes {
    std::uint64_t size = 0;
    /// Fills `out` from `offset`; false when that fails or ends early.
    std::function<bool(std::uint64_t offset, std::span<std::uint8_t> out)> read;
};

/// Memory that a core's driver loads segments into. Linux compares strictly: a segment that ends with the window is
/// refused.
struct CoreWindow {
    std::uint64_t base, size;
    std::string_view name;
};

/// What is known of a kind of remote processor.
struct CoreFacts {
    std::string_view processor;  ///< `name` in sysfs
    std::string_view board;      ///< a `compatible` of the device tree's root
    std::uint16_t elf_machine;
    std::string_view machine_name;
    std::span<const CoreWindow> windows;
    bool table_wanted;  ///< the driver misbehaves without a resource table
};

/// The facts of a device on this machine, if it is a known one.
[[nodiscard]] const CoreFacts* known_core(const SystemPaths& paths, const Device& device);
/// All that are known.
[[nodiscard]] std::span<const CoreFacts> all_known_cores();

enum class ElfPolicy : std::uint8_t {
    Auto,    ///< a known core: everything; another: what is an ELF must be a sound one
    Strict,  ///< ELF, 32 or 64 bits, sound, with a resource table
    Off,
};

struct ElfWishes {
    ElfPolicy policy = ElfPolicy::Auto;
    std::optional<bool> table;  ///< resource table required; not set: as the core's facts say
};

/// Nothing, or why the file is refused: what, where, and what was wanted.
[[nodiscard]] Result<void> check_firmware(const FirmwareBytes& file, const CoreFacts* core, const ElfWishes& wishes);

/// ELF machine number of the file (e_machine), nothing if it is no ELF.
[[nodiscard]] std::optional<std::uint16_t> elf_machine(const FirmwareBytes& file);
/// e_machine of programs for this machine's own processor.
[[nodiscard]] std::uint16_t host_machine();

}  // namespace talpa::remoteproc
