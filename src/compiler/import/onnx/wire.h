// Protocol buffers as .onnx files need them (model-formats, section 4.1): fields of a message one after the other,
// every length held against its parent.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/core/byte_reader.h"
#include "base/host/error.h"

namespace talpa::compiler::import::onnx {

struct Field {
    std::uint32_t number = 0;
    enum class Type : std::uint8_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 } type = Type::Varint;
    std::uint64_t integer = 0;  ///< of a varint or fixed field
    talpa::Bytes bytes;         ///< of a length-delimited field

    [[nodiscard]] host::Result<std::int64_t> signed_integer() const;
    [[nodiscard]] host::Result<float> real() const;
    [[nodiscard]] host::Result<std::string_view> text() const;
    [[nodiscard]] host::Result<talpa::Bytes> message() const;
    /// Repeated numbers: packed, or one of several fields.
    [[nodiscard]] host::Result<void> append_to(std::vector<std::int64_t>& list) const;
    [[nodiscard]] host::Result<void> append_to(std::vector<float>& list) const;
    [[nodiscard]] host::Result<void> append_to(std::vector<double>& list) const;
};

/// All fields of a message. Errors name field number and offset in the message.
[[nodiscard]] host::Result<std::vector<Field>> read_fields(talpa::Bytes message);

}  // namespace talpa::compiler::import::onnx
