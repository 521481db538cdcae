// What is known of an operator by its target: the row that imports it, that it only checks, or why it is refused.
#pragma once

#include <string_view>

#include "base/host/error.h"
#include "compiler/import/pt2/call.h"

namespace talpa::compiler::import::pt2 {

struct FoundOperator {
    const Operator* row = nullptr;
    bool in_place = false;  ///< the target names the form that changes its operand
};

/// As rows and refusals have it: without "torch.ops.".
[[nodiscard]] std::string_view short_target(std::string_view target);
/// Errors: NotSupported, with a hint where there is one.
[[nodiscard]] host::Result<FoundOperator> find_operator(std::string_view target);
/// Operators that only check something.
[[nodiscard]] bool only_checks(std::string_view target);

}  // namespace talpa::compiler::import::pt2
