// CRC-32 as Ethernet, zip and PNG have it: polynomial EDB88320 reflected, initial and final FFFFFFFF. The control block
// and the RUN command carry it, so both sides of the chip compute it.
#pragma once

#include <cstdint>

#include "base/core/byte_reader.h"

namespace talpa::link {

/// CRC of `bytes`; to go on over several pieces pass the CRC so far.
[[nodiscard]] std::uint32_t crc32(Bytes bytes, std::uint32_t so_far = 0);

}  // namespace talpa::link
