// Command streams as text: one line a command, one block an operation, in the terms of the field. Hosts only; used by
// `talpa inspect` and the docs.
#pragma once

#include <string>
#include <vector>

#include "base/core/error.h"
#include "npu/commands.h"
#include "npu/decoder.h"
#include "npu/operation.h"

namespace talpa::npu {

/// "   24  IFM_PRECISION       int8 NHCWB16": offset in the stream, name, value.
[[nodiscard]] std::string command_text(const Command& command);

/// One line: "CONV 3x3 s2  1:0x0 224x224x3 int8 NHWC -> 2:0x0 112x112x32 int8 NHCWB16".
[[nodiscard]] std::string operation_summary(const Operation& operation);

/// The summary and below it, indented, everything else that the operation uses.
[[nodiscard]] std::string operation_text(const Operation& operation);

/// "int8", "uint16".
[[nodiscard]] std::string type_text(ElementType type);
/// "1:0x4c00 56x56x24 int8 NHCWB16": region, base, height x width x depth, type, layout.
[[nodiscard]] std::string feature_map_text(const FeatureMap& fm);

/// What a listing shows.
enum class Listing : std::uint8_t { Commands, Operations, Both };
/// The whole stream, a line feed after each line. A stream that cannot be decoded is shown up to the fault, which ends
/// the listing as "error: …".
[[nodiscard]] std::string stream_text(Words words, Listing listing = Listing::Operations);

}  // namespace talpa::npu
