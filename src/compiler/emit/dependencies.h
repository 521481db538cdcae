// Which operations meet in memory: the largest BLOCKDEP between neighbours and the waits between the kernels and the
// DMA. Reckoned from byte ranges, apart from the checker that verifies streams. (ethos-u65, sections 3.3 and 3.5)
#pragma once

#include <cstdint>
#include <vector>

#include "npu/hardware.h"
#include "npu/operation.h"

namespace talpa::compiler {

/// How many blocks of `previous` may be unfinished when `op` starts, 0 to 3.
[[nodiscard]] unsigned block_dependency(const npu::Operation& previous, const npu::Operation& op,
                                        const npu::Hardware& hardware);

/// Does one of them write what the other reads or writes?
[[nodiscard]] bool conflict(const npu::Operation& a, const npu::Operation& b, const npu::Hardware& hardware);

}  // namespace talpa::compiler
