// Instructions and values of a method in readable form.
#pragma once

#include <string>

#include "inspect/report.h"
#include "pte/program.h"

namespace talpa::inspect {

/// "aten::add.out": the name with its overload.
[[nodiscard]] std::string operator_name(const pte::OperatorView& op);

/// "%3" for a tensor, the number or list itself for others; indices that do not exist are shown as they are.
[[nodiscard]] std::string value_text(const pte::MethodView& method, std::int64_t index);
/// "quantized_decomposed::quantize_per_tensor.out(%0, 0.032, -2, -128, 127, 1) -> %1"
[[nodiscard]] InstructionReport instruction_report(const pte::MethodView& method, std::uint32_t chain,
                                                   std::uint32_t index, runtime::OperatorTable operators);

}  // namespace talpa::inspect
