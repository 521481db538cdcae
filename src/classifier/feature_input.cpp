#include "classifier/feature_input.h"

#include <fmt/format.h>

#include <cstring>

#include "image/decode.h"
#include "runtime/host/c_order.h"

namespace talpa::classifier {
namespace {

using runtime::ScalarType;
using runtime::host::PortInfo;

constexpr std::string_view kNpyMagic("\x93NUMPY", 6);

bool is_npy(Bytes file) {
    return file.size() >= kNpyMagic.size() && std::memcmp(file.data(), kNpyMagic.data(), kNpyMagic.size()) == 0;
}

/// How NumPy names the type; nothing for types that no input has.
std::string_view numpy_name(ScalarType type) {
    switch (type) {
        case ScalarType::Float32:
            return "'<f4'";
        case ScalarType::Int8:
        case ScalarType::QInt8:
            return "'|i1'";
        case ScalarType::UInt8:
        case ScalarType::QUInt8:
            return "'|u1'";
        case ScalarType::Int16:
            return "'<i2'";
        case ScalarType::Int32:
            return "'<i4'";
        default:
            return {};
    }
}

/// The data of an array whose elements are the input's own: NumPy's format, versions 1 to 3. Nothing is converted, so
/// that no scale has to be guessed.
host::Result<Bytes> data_of_npy(Bytes file, const PortInfo& port) {
    const auto bad = [](std::string_view why) {
        return host::failure(ErrorCode::InvalidArgument, "the .npy array cannot be taken: {}", why);
    };
    if (file.size() < 12) return bad("it is cut short");
    const unsigned version = file[6];
    if (version < 1 || version > 3) return bad("an unknown version of the format");
    const std::size_t start = version == 1 ? 10 : 12;
    std::size_t length = file[8] | std::size_t{file[9]} << 8;
    if (version > 1) length |= std::size_t{file[10]} << 16 | std::size_t{file[11]} << 24;
    if (length > file.size() - start) return bad("its header is cut short");
    const std::string_view header(reinterpret_cast<const char*>(file.data()) + start, length);
    const std::string_view type = numpy_name(port.type);
    if (type.empty() || header.find(type) == std::string_view::npos)
        return bad(fmt::format("its elements are not the input's {}", runtime::scalar_name(port.type)));
    if (header.find("'fortran_order': False") == std::string_view::npos) return bad("it is not in C order");
    const Bytes data = file.subspan(start + length);
    if (data.size() != port.size_bytes)
        return bad(fmt::format("it has {} elements, the input is {}", data.size() / runtime::scalar_size(port.type),
                               port.describe()));
    return data;
}

}  // namespace

bool is_features(Bytes file, const PortInfo& port) {
    return is_npy(file) || (file.size() == port.size_bytes && !image::recognise(file));
}

host::Result<std::vector<std::uint8_t>> features(Bytes file, const PortInfo& port) {
    Bytes data = file;
    if (is_npy(file)) {
        TRY_ASSIGN(data, data_of_npy(file, port));
    }
    if (data.size() != port.size_bytes)
        return host::failure(ErrorCode::InvalidArgument, "{} bytes are no input of {}", data.size(), port.describe());
    return runtime::host::from_c_order(data, runtime::scalar_size(port.type), port.dim_order, port.sizes);
}

}  // namespace talpa::classifier
