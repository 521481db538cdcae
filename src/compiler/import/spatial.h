// Channels-first formats meet spatial operators, which are channels-last in the graph.
#pragma once

#include "compiler/graph/builder.h"

namespace talpa::compiler::import {

/// For spatial operators on N x C x L or N x C x H x W (or without N): brings to N x H x W x C and back.
struct SpatialView {
    std::size_t dims = 2;
    bool batched = true;
};
[[nodiscard]] host::Result<ValueId> to_channels_last(Builder& b, ValueId x, SpatialView view);
[[nodiscard]] host::Result<ValueId> from_channels_last(Builder& b, ValueId x, SpatialView view,
                                                       const std::string& name);
[[nodiscard]] host::Result<SpatialView> spatial_view(const Builder& b, ValueId x, std::size_t dims);

}  // namespace talpa::compiler::import
