// The Cortex-M33's registers as GDB sees them: one table gives their numbers, the target description and the access.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "board/cpu/cpu.h"

namespace talpa::board::gdb {

/// Numbers are those of the description: r0-r12, sp, lr, pc, xpsr, d0-d15, fpscr, msp, psp, then the core's own.
[[nodiscard]] unsigned register_count();
/// Bytes of register `number` in target order (little-endian); nothing when there is no such register.
[[nodiscard]] std::optional<std::string> read_register(const cpu::Registers& registers, unsigned number);
/// False when there is no such register or it has another size.
[[nodiscard]] bool write_register(cpu::Registers& registers, unsigned number, std::string_view bytes);

/// target.xml, by the standard features org.gnu.gdb.arm.m-profile, .vfp and .m-system and one of ours.
[[nodiscard]] const std::string& target_description();

}  // namespace talpa::board::gdb
