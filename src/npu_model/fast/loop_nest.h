// The bytes of feature maps that are walked together, as loops with strides: as few as the layouts allow, so that a
// whole tensor in one piece becomes one loop, and a transposition two.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "npu_model/kernels.h"

namespace talpa::npu_model::fast {

inline constexpr std::size_t kMaxOperands = 3;

struct Loop {
    std::int64_t count = 1;
    std::array<std::int64_t, kMaxOperands> stride{};  ///< bytes, per operand
};

/// Loops over elements; starts are offsets in each operand's region.
struct LoopNest {
    std::array<std::int64_t, kMaxOperands> start{};
    std::vector<Loop>
        loops;  ///< none of count 1, no two that could be one; the innermost (smallest output stride) last
};

/// Nests that together visit every element of the last operand (the output) once: one, or two where bricks end with a
/// part of 16 channels. Nothing where a map lies in several tiles.
[[nodiscard]] std::optional<std::vector<LoopNest>> loop_nests(std::span<const npu::FeatureMap* const> maps);

}  // namespace talpa::npu_model::fast
