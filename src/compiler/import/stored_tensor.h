// A tensor as files hold it: a view (sizes, strides, offset) into raw bytes of some element type. Gathered into a
// contiguous constant of a type that graphs have, with the checks of model-formats, section 0.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/core/byte_reader.h"
#include "base/host/error.h"
#include "compiler/graph/graph.h"

namespace talpa::compiler::import {

enum class RawType : std::uint8_t {
    UInt8,
    Int8,
    UInt16,
    Int16,
    UInt32,
    Int32,
    UInt64,
    Int64,
    Bool,
    Float16,
    BFloat16,
    Float32,
    Float64
};
[[nodiscard]] std::size_t raw_size(RawType type);
[[nodiscard]] const char* raw_name(RawType type);

struct StoredTensor {
    RawType type = RawType::Float32;
    Shape sizes;
    std::vector<std::int64_t> strides;  ///< elements; empty: row-major
    std::int64_t offset = 0;            ///< elements
    talpa::Bytes storage;
};

enum class Finite : std::uint8_t { Required, NoNan, Any };

/// Halves, bfloat16 and doubles become float32; unsigned 16 to 64 bits become the next wider signed type where all
/// values fit. Errors do not name the tensor; the caller does.
[[nodiscard]] host::Result<Value> load_tensor(const std::string& name, const StoredTensor& tensor, Finite finite);

/// Checks sizes and their product: rank at most 8, nothing negative, at most 2^40 elements.
[[nodiscard]] host::Result<std::int64_t> checked_count(const Shape& sizes);

[[nodiscard]] float half_to_float(std::uint16_t bits);

}  // namespace talpa::compiler::import
