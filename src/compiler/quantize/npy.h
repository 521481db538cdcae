// NumPy's .npy arrays, read into float32.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/host/error.h"

namespace talpa::compiler {

struct NpyArray {
    std::vector<std::int64_t> shape;
    std::vector<float> numbers;
};
[[nodiscard]] host::Result<NpyArray> read_npy(std::span<const std::uint8_t> file);

}  // namespace talpa::compiler
