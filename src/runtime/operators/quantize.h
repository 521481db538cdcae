// quantize_per_tensor and dequantize_per_tensor, which stand at the borders of every delegate with float inputs or
// outputs: exact to ExecuTorch's kernels (pte-format, section 6.2). This table is all that the
// firmware carries; hosts have it in front of table.def's rows. Freestanding.
#pragma once

#include "runtime/operator.h"

namespace talpa::runtime::operators {

// input, scale, zero_point, quant_min, quant_max, dtype, out
[[nodiscard]] Result<void> quantize_per_tensor(Arguments& args);
[[nodiscard]] Result<void> quantize_per_tensor_by_tensors(Arguments& args);
// input, scale, zero_point, quant_min, quant_max, dtype, out_dtype or Null, out
[[nodiscard]] Result<void> dequantize_per_tensor(Arguments& args);
[[nodiscard]] Result<void> dequantize_per_tensor_by_tensors(Arguments& args);
// the same without out_dtype
[[nodiscard]] Result<void> cortex_m_dequantize_per_tensor(Arguments& args);

inline constexpr Operator kQuantizeOperators[] = {
    {"quantized_decomposed::quantize_per_tensor.out", 8, "tniiiio", quantize_per_tensor},
    {"quantized_decomposed::dequantize_per_tensor.out", 9, "tniiiii?o", dequantize_per_tensor},
    {"cortex_m::quantize_per_tensor.out", 8, "tniiiio", quantize_per_tensor},
    {"cortex_m::dequantize_per_tensor.out", 8, "tniiiio", cortex_m_dequantize_per_tensor},
    {"quantized_decomposed::quantize_per_tensor.Tensor_out", 8, "tttiiio", quantize_per_tensor_by_tensors},
    {"quantized_decomposed::dequantize_per_tensor.Tensor_out", 9, "tttiiii?o", dequantize_per_tensor_by_tensors},
};

}  // namespace talpa::runtime::operators
