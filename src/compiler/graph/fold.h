// Operators on constants, done at compile time: what importers meet as shape arithmetic, weights in another layout,
// masks and frozen parameters.
#pragma once

#include <optional>
#include <span>

#include "compiler/graph/graph.h"

namespace talpa::compiler {

/// Largest result that is folded, in elements (model-formats, section 4.4).
inline constexpr std::int64_t kFoldLimit = 16 << 20;

/// The result's bytes when all operands are constants and the operator can be folded. `result` has shape, type and
/// quantization; a per-channel quantization's axis has been moved already.
[[nodiscard]] ConstantData fold(const Graph& graph, Op op, const Attributes& attributes,
                                std::span<const ValueId> operands, const Value& result);

/// out[i] = in[offset + sum(i_d * strides_d)], items of `item` bytes. The caller has checked that all of it lies
/// inside.
[[nodiscard]] Bytes gather_strided(std::span<const std::uint8_t> in, std::size_t item, const Shape& shape,
                                   std::span<const std::int64_t> strides, std::int64_t offset);

}  // namespace talpa::compiler
