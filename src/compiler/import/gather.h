// Elements picked by a list of indices. Where the list is a constant it is slices, which cost the NPU nothing.
#pragma once

#include <string>

#include "compiler/graph/builder.h"

namespace talpa::compiler::import {

/// `axis`: 0 to the rank of x less 1. Errors: indices outside of x, or that are no whole numbers.
[[nodiscard]] host::Result<ValueId> gather(Builder& b, ValueId x, ValueId indices, int axis, const std::string& name);

}  // namespace talpa::compiler::import
