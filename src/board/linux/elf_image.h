// A firmware ELF as Linux's remoteproc loads it: program headers by physical address, the resource table by section
// name. Nothing of it is trusted. (imx93-remoteproc, section 1.3)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/byte_reader.h"
#include "base/host/error.h"

namespace talpa::board {

struct ElfSegment {
    std::uint64_t physical_address = 0;
    std::uint64_t memory_size = 0;
    Bytes data;  ///< the bytes in the file; the rest of memory_size is zero
};

struct ElfSection {
    std::string_view name;
    std::uint64_t address = 0;
    Bytes data;  ///< empty for SHT_NOBITS
};

/// A view of an ELF32 or ELF64, little-endian; the bytes must outlive it.
class ElfImage {
  public:
    /// The kernel's checks: header, program headers present and inside, each PT_LOAD with filesz <= memsz and its bytes
    /// in the file. The machine is not checked, as Linux does not.
    [[nodiscard]] static host::Result<ElfImage> open(Bytes file);

    [[nodiscard]] const std::vector<ElfSegment>& segments() const { return segments_; }
    [[nodiscard]] std::uint64_t entry() const { return entry_; }
    [[nodiscard]] std::uint16_t machine() const { return machine_; }
    /// The section of that name, or null.
    [[nodiscard]] const ElfSection* section(std::string_view name) const;

  private:
    std::vector<ElfSegment> segments_;
    std::vector<ElfSection> sections_;
    std::uint64_t entry_ = 0;
    std::uint16_t machine_ = 0;
};

}  // namespace talpa::board
