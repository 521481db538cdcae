// What the NPU's registers can say of a feature map, for all who ask before there are operations. (ethos-u65,
// section 4.1)
#pragma once

#include <cstdint>

namespace talpa::compiler {

/// Elements along one dimension: 16-bit registers that hold one less.
inline constexpr std::int64_t kMostInDimension = 65536;

}  // namespace talpa::compiler
