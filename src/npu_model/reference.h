// The reference kernels, one function an operation family; run_reference picks. Contracts: Context in kernels.h.
#pragma once

#include "npu_model/kernels.h"

namespace talpa::npu_model {

[[nodiscard]] Result<void> convolution(const Context& context);  // and fully connected, transposed
[[nodiscard]] Result<void> depthwise(const Context& context);
[[nodiscard]] Result<void> max_pool(const Context& context);
[[nodiscard]] Result<void> average_pool(const Context& context);
[[nodiscard]] Result<void> reduce_sum(const Context& context);
[[nodiscard]] Result<void> elementwise(const Context& context);

/// A sum as the accumulator holds it: wrapped to 32 or 40 bits, and noted when it did not fit.
[[nodiscard]] std::int64_t accumulated(const Context& context, std::int64_t sum);

}  // namespace talpa::npu_model
