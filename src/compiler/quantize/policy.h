// How each operator's result is quantized: the one table of it.
#pragma once

#include "compiler/graph/graph.h"

namespace talpa::compiler {

enum class ResultRule : std::uint8_t {
    Own,     ///< a range of its own
    Same,    ///< its numbers are those of its (first, or for concat every) operand: one quantization for all of them
    Unit,    ///< 0 to 1: scale 1/256
    Signed,  ///< -1 to 1: scale 1/128
    Float,   ///< stays float: computed on the CPU
};
/// `bits`: of the widest operand or result, 8 or 16.
[[nodiscard]] ResultRule result_rule(const Graph& graph, const Node& node, int bits);

/// Operand `index` is a convolution's or linear layer's weights or bias.
[[nodiscard]] bool is_weight(const Node& node, std::size_t index);
[[nodiscard]] bool is_bias(const Node& node, std::size_t index);
/// Operand `index` is an activation in real numbers (not weights, bias, or indices).
[[nodiscard]] bool is_activation(const Graph& graph, const Node& node, std::size_t index);

}  // namespace talpa::compiler
