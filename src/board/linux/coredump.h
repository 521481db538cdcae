// What Linux keeps of a crashed processor: an ELF core file of its memory. (imx93-remoteproc, section 7.3)
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "board/linux/platform.h"

namespace talpa::board {

struct DumpSegment {
    std::uint64_t address = 0;  ///< as the core file calls it
    std::uint64_t system = 0;   ///< where it lies
    std::uint64_t size = 0;
};

/// An ELF32 of type ET_CORE with a PT_LOAD per segment; a segment that has no memory has no bytes.
[[nodiscard]] std::string make_coredump(std::span<const DumpSegment> segments, SystemMemory& memory);

}  // namespace talpa::board
