// Views as feature maps of an operation: addresses, strides and tiles for some of their rows. (ethos-u65, section 4.1)
#pragma once

#include "compiler/lower/network.h"
#include "compiler/schedule/plan.h"

namespace talpa::compiler {

/// Rows [first, end) of the view.
[[nodiscard]] npu::FeatureMap feature_map(const Tensor& tensor, const Placement& placement, const View& view,
                                          std::uint32_t first, std::uint32_t end);

/// All of a tensor, its rows one behind the other.
[[nodiscard]] View whole_of(TensorId id, const Tensor& tensor, std::int32_t zero_point);

/// The operation of a step for rows [first, end) of its OFM, without block, weights' addresses and waits.
[[nodiscard]] npu::Operation rows_of_step(const Network& network, const std::vector<Placement>& placements,
                                          const Step& step, std::uint32_t first, std::uint32_t end);

}  // namespace talpa::compiler
