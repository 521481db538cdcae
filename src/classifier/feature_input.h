// Inputs that are no pictures: features that somebody computed before (a spectrogram, sensor values), as a NumPy array
// or as the bytes of the tensor itself.
#pragma once

#include <vector>

#include "base/core/byte_reader.h"
#include "base/host/error.h"
#include "runtime/host/session.h"

namespace talpa::classifier {

/// Is the file meant as features for this input? A `.npy` array is; and what has exactly the input's bytes and does not
/// begin as a picture does.
[[nodiscard]] bool is_features(Bytes file, const runtime::host::PortInfo& port);

/// The input as the program stores it. A `.npy` array has the input's own type and as many elements, in C order of its
/// logical shape; raw bytes are little-endian elements in the same order. InvalidArgument says what does not fit.
[[nodiscard]] host::Result<std::vector<std::uint8_t>> features(Bytes file, const runtime::host::PortInfo& port);

}  // namespace talpa::classifier
