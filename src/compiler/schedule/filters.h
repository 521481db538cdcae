// Encodes the weights of steps for the blocks that were chosen. Equal filters are encoded once.
#pragma once

#include "compiler/schedule/plan.h"

namespace talpa::compiler {

[[nodiscard]] EncodedFilter encode_filter(const Step& step, const Block& block, const npu::Hardware& hardware);

/// Bytes that the weights of a step will take, about.
[[nodiscard]] std::uint64_t estimated_weight_bytes(const Step& step);
[[nodiscard]] std::uint64_t record_bytes(const Step& step);

/// Encodes the filters of all steps that have one (`blocks` as steps) on as many threads as the machine has.
[[nodiscard]] std::vector<EncodedFilter> encode_filters(const Network& network, const std::vector<Block>& blocks,
                                                        const npu::Hardware& hardware);

}  // namespace talpa::compiler
