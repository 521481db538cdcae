// Why an operator that has no row in a format's table has none, and what to do instead. What several formats refuse is
// said here, so that they say it alike.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/host/error.h"

namespace talpa::compiler::import {

struct Refusal {
    std::string_view what, hint;
};

inline constexpr Refusal kNoRecurrentLayers{"recurrent layers are not supported",
                                            "Use convolutions over time (DS-CNN) instead."};
inline constexpr Refusal kNoDynamicQuantization{"dynamic quantization is not supported",
                                                "Quantize statically, with calibration data."};
inline constexpr Refusal kNoControlFlow{"control flow is not supported",
                                        "Only networks without control flow can be compiled."};
inline constexpr Refusal kNoOperator{"the operator is not supported", ""};

/// Of the operators whose names, as the format has them, begin with `prefix`.
struct RefusedOperators {
    std::string_view prefix;
    Refusal why;
};

[[nodiscard]] inline host::Error refused(const Refusal& why) {
    return {ErrorCode::NotSupported, std::string(why.what), std::string(why.hint)};
}

/// By the first row that fits.
[[nodiscard]] inline host::Error refused(std::span<const RefusedOperators> table, std::string_view name) {
    for (const RefusedOperators& row : table)
        if (name.starts_with(row.prefix)) return refused(row.why);
    return refused(kNoOperator);
}

}  // namespace talpa::compiler::import
