// What every command of a stream means and how its value reads: the table behind the printer and behind
// docs/formats/command-stream.md. Hosts only. (ethos-u65, sections 3.3 and 3.4)
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "npu/commands.h"

namespace talpa::npu {

/// How a register's value is shown.
enum class RegisterFormat : std::uint8_t {
    Number,
    MinusOne,
    Signed,
    IfmPrecision,
    Ifm2Precision,
    OfmPrecision,
    Upscale,
    KernelStride,
    AccFormat,
    Activation,
    DmaRegion,
    Broadcast,
    Address,
    Stride,
    Length,
    Length40,
    Scale,
    Multiplier,
};

struct RegisterReference {
    std::uint16_t code;
    bool has_payload;
    RegisterFormat format;
    const char* meaning;
};
struct OperationReference {
    Op code;
    const char* parameter;
    const char* meaning;
};

/// Every register once, every operation once.
[[nodiscard]] std::span<const RegisterReference> register_reference();
[[nodiscard]] std::span<const OperationReference> operation_reference();
/// Null for operations.
[[nodiscard]] const RegisterReference* find_register(const Command& command);

/// docs/formats/command-stream.md, whole.
[[nodiscard]] std::string command_stream_page();

}  // namespace talpa::npu
