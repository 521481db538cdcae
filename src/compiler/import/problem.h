// What an importer finds wrong with a model. Operators that are not supported are collected and reported together, each
// with where it stands and what can be done; what makes the file unreadable ends the import at once.
#pragma once

#include <string>
#include <vector>

#include "base/host/error.h"
#include "compiler/graph/graph.h"

namespace talpa::compiler::import {

struct Problem {
    Source source;
    std::string what;  ///< the constraint that is broken
    std::string hint;  ///< what can be done; may be empty
};

/// One error that lists them all (the first hundred), NotSupported.
[[nodiscard]] host::Error problems_error(const std::vector<Problem>& problems);

/// "conv2d_3 (aten.conv2d.default, features.0.0, model.py:12)"
[[nodiscard]] std::string where_text(const Source& source);

/// The network is for `batch` of what the file leaves the number of open. `warnings` may be null.
void warn_of_free_batch(const std::string& input, std::int64_t batch, std::vector<std::string>* warnings);

}  // namespace talpa::compiler::import
