// How many blocks of the previous block operation may be unfinished when the next one starts: the largest BLOCKDEP that
// is safe. (ethos-u65, section 3.5)
#pragma once

#include "npu/hardware.h"
#include "npu/operation.h"
#include "npu_model/strict/footprint.h"

namespace talpa::npu_model {

inline constexpr unsigned kMaxBlockDependency = 3;

/// Both are block operations, `previous` the one issued just before `op`.
[[nodiscard]] unsigned max_block_dependency(const npu::Operation& previous, const npu::Operation& op,
                                            const npu::Hardware& hardware, Effort& effort);

}  // namespace talpa::npu_model
