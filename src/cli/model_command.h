// talpa model: networks that can be had, listed and fetched.
#pragma once

#include <string>

#include "base/host/error.h"

namespace talpa::cli {

struct ModelOptions {
    std::string name;
    std::string output;  ///< copy the weights there
    bool json = false;
};

[[nodiscard]] host::Result<void> list_models(const ModelOptions& options);
/// Prints the path of the weights.
[[nodiscard]] host::Result<void> get_model(const ModelOptions& options);

}  // namespace talpa::cli
