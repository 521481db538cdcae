// What a run may cost: a stream of a few words can ask for centuries of work.
#pragma once

#include <cstdint>

#include "npu/operation.h"

namespace talpa::npu_model {

/// Multiply-accumulates, elements and bytes that the operation handles, saturating: what ModelOptions::work_limit
/// counts.
[[nodiscard]] std::uint64_t work_of(const npu::Operation& op);

}  // namespace talpa::npu_model
