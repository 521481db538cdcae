// What every stage knows about an operator: its name, what attributes it carries, how many operands it takes and how
// its result lies to them. One row an operator, so that checks, dumps and passes need no list of their own.
#pragma once

#include <cstdint>

#include "compiler/graph/graph.h"

namespace talpa::compiler {

enum class OpClass : std::uint8_t {
    Spatial,   ///< N x H x W x C in and out: convolutions, pools, resize
    Matrix,    ///< the last one or two dimensions are contracted
    Reduce,    ///< some axes go or become 1
    Binary,    ///< elementwise on two operands, broadcasting
    Unary,     ///< elementwise on one operand
    Axis,      ///< along one axis, the shape stays: softmax
    Norm,      ///< over the last dimensions
    Movement,  ///< elements are moved, repeated or dropped, never changed
};

struct OpFacts {
    Op op;
    const char* name;
    OpClass kind;
    std::uint8_t attributes;  ///< index into Attributes
    std::uint8_t min_operands, max_operands;
};
inline constexpr std::uint8_t kAnyOperands = 255;

[[nodiscard]] const OpFacts& op_facts(Op op);

/// Has operand 1 weights and operand 2 the bias, if there is one?
[[nodiscard]] constexpr bool has_weights(Op op) {
    return op == Op::Conv2d || op == Op::ConvTranspose2d || op == Op::FullyConnected;
}

/// The clamp of an operator that can carry one, or null.
[[nodiscard]] Clamp* fused_clamp(Node& node);
[[nodiscard]] const Clamp* fused_clamp(const Node& node);

}  // namespace talpa::compiler
