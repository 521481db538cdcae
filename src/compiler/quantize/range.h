// From a histogram to the scale and zero point that lose least.
#pragma once

#include <optional>
#include <string_view>

#include "compiler/graph/graph.h"
#include "compiler/quantize/histogram.h"

namespace talpa::compiler {

enum class Observer : std::uint8_t { MinMax, Percentile, Mse, Entropy };
[[nodiscard]] std::string_view observer_name(Observer observer);
[[nodiscard]] std::optional<Observer> find_observer(std::string_view name);

struct RealRange {
    double low = 0, high = 0;  ///< low <= 0 <= high
};

/// The range to represent in 2^bits steps. Always holds zero.
[[nodiscard]] RealRange choose_range(const Histogram& histogram, Observer observer, int bits);

/// Per tensor; asymmetric in 8 bits, symmetric (zero point 0) in 16, as the NPU wants them. A range of zero gets the
/// scale 1 / 2^bits.
[[nodiscard]] Quantization quantization_for(RealRange range, DType type);

}  // namespace talpa::compiler
