// Cross-layer equalisation of linear values: where convolutions write, and convolutions read, channels with nothing but
// additions between them, each channel can be scaled down at its writers and up again at its readers without changing
// what the network computes. Channels of like range lose less to one common quantization. Values that are clamped on
// the way are left alone: a clip cannot be scaled along.
#pragma once

#include <vector>

#include "compiler/graph/graph.h"

namespace talpa::compiler {

/// `peaks`: by value, the greatest magnitude of each channel in calibration. `strength`: 0 nothing, 1 all channels get
/// the same range, between them the readers' weights have a say. Constants that change become new values, so ids stay.
[[nodiscard]] Graph equalize(const Graph& graph, const std::vector<std::vector<double>>& peaks, double strength);

}  // namespace talpa::compiler
