#include "classifier/feature_input.h"

#include <optional>

#include "base/host/npy.h"
#include "image/decode.h"
#include "runtime/host/c_order.h"

namespace talpa::classifier {
namespace {

using runtime::ScalarType;
using runtime::host::PortInfo;

/// The array elements that are the input's own; nothing for types that no input has.
std::optional<host::NpyType> npy_type_of(ScalarType type) {
    switch (type) {
        case ScalarType::Float32:
            return host::NpyType::Float32;
        case ScalarType::Int8:
        case ScalarType::QInt8:
            return host::NpyType::Int8;
        case ScalarType::UInt8:
        case ScalarType::QUInt8:
            return host::NpyType::UInt8;
        case ScalarType::Int16:
            return host::NpyType::Int16;
        case ScalarType::Int32:
            return host::NpyType::Int32;
        default:
            return std::nullopt;
    }
}

/// The data of an array whose elements are the input's own. Nothing is converted, so that no scale has to be guessed.
host::Result<Bytes> data_of_npy(Bytes file, const PortInfo& port) {
    TRY_ASSIGN(const host::NpyArray array, host::read_npy(file));
    if (array.type != npy_type_of(port.type))
        return host::failure(ErrorCode::InvalidArgument, "the array's elements are {}, not the input's {}",
                             host::npy_type_name(array.type), runtime::scalar_name(port.type));
    if (array.data.size() != port.size_bytes)
        return host::failure(ErrorCode::InvalidArgument, "the array has {} elements, the input is {}",
                             array.data.size() / runtime::scalar_size(port.type), port.describe());
    return array.data;
}

}  // namespace

bool is_features(Bytes file, const PortInfo& port) {
    return host::is_npy(file) || (file.size() == port.size_bytes && !image::recognise(file));
}

host::Result<std::vector<std::uint8_t>> features(Bytes file, const PortInfo& port) {
    Bytes data = file;
    if (host::is_npy(file)) {
        TRY_ASSIGN(data, data_of_npy(file, port));
    }
    if (data.size() != port.size_bytes)
        return host::failure(ErrorCode::InvalidArgument, "{} bytes are no input of {}", data.size(), port.describe());
    return runtime::host::from_c_order(data, runtime::scalar_size(port.type), port.dim_order, port.sizes);
}

}  // namespace talpa::classifier
