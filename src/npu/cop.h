// The payload around a command stream: what compilers put in a delegate's cmd_data for the driver ("driver actions").
// Reads COP1, and COP2 as Linux tools emit it; matches a program's configuration against a device's, naming what was
// wanted and what is there. Freestanding. (ethos-u65, sections 3.6 and 2.4; pte-format, sections 7.4 and 8)
#pragma once

#include <cstdint>

#include "base/core/byte_reader.h"
#include "base/core/error.h"
#include "npu/decoder.h"

namespace talpa::npu {

inline constexpr std::uint32_t kCop1 = 0x31504F43;  ///< "COP1"
inline constexpr std::uint32_t kCop2 = 0x32504F43;  ///< "COP2"
inline constexpr std::uint32_t kVeum = 0x4D554556;  ///< "VEUM", the configuration block of COP2

struct Payload {
    enum class Format : std::uint8_t { Cop1, Cop2 } format = Format::Cop1;
    std::uint32_t config = 0;               ///< CONFIG word of the NPU it was compiled for
    std::uint32_t id = 0;                   ///< ID word likewise
    std::uint32_t stream_offset_bytes = 0;  ///< of `stream` in the payload
    Words stream;                           ///< points into the payload
    bool separate_io = false;               ///< COP2: inputs are region 3 and outputs region 4
};

/// True if the bytes begin as a payload does, of either format.
[[nodiscard]] bool is_payload(Bytes bytes);

/// Takes a payload apart; `bytes` must lie at a 4-aligned address, stay where they are, and have a size that is a
/// multiple of 4 (a tail of zero words after the stream is allowed). Errors: InvalidProgram with the byte offset;
/// NotSupported for the obsolete actions 3 and 4.
[[nodiscard]] Result<Payload> parse_payload(Bytes bytes);

/// May a program for `wanted` run on a device that reads `present`? DelegateIncompatible tells which of product, MACs,
/// stream version, custom DMA or architecture differs. A different shared-RAM size alone is no reason.
[[nodiscard]] Result<void> match_config(std::uint32_t wanted_config, std::uint32_t wanted_id,
                                        std::uint32_t present_config, std::uint32_t present_id);

}  // namespace talpa::npu
