// NumPy's .npy arrays: what np.save writes, versions 1 to 3 of the format (numpy.lib.format), in C order.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/core/byte_reader.h"
#include "base/host/error.h"

namespace talpa::host {

/// What NumPy calls an element; little-endian.
enum class NpyType : std::uint8_t { Float32, Float64, Int8, UInt8, Int16, Int32, Int64 };

struct NpyArray {
    NpyType type = NpyType::Float32;
    std::vector<std::int64_t> shape;
    Bytes data;  ///< of the file that was read: exactly the elements that `shape` says, aligned to nothing
};

/// Does the file begin as an array does?
[[nodiscard]] bool is_npy(Bytes file);

/// InvalidArgument says what cannot be read: another version, element type or order, a shape that makes no sense or is
/// not what the data have.
[[nodiscard]] Result<NpyArray> read_npy(Bytes file);

/// "float32"
[[nodiscard]] std::string_view npy_type_name(NpyType type);

/// The elements as float32, rounded where the type holds more.
[[nodiscard]] std::vector<float> to_float32(const NpyArray& array);

}  // namespace talpa::host
