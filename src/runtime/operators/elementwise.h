// The engine of the elementwise operators: broadcast up to three inputs (tensors or Scalars), load them chunk by chunk
// into one domain, apply a kernel, store the results with conversion into the output. Freestanding.
#pragma once

#include "runtime/operators/call.h"

namespace talpa::runtime::operators {

/// An input: a tensor, or a number that stands for a tensor full of it.
struct Input {
    const Tensor* tensor = nullptr;
    std::size_t arg = 0;
    Scalar number;
};

/// What a kernel gets: chunks of the inputs, constants of the call, and a place to note a division of integers by zero.
struct Batch {
    std::array<Chunk, 3> in;
    Chunk out;
    std::size_t n = 0;
    float f[3] = {};         // constants in the float domain
    std::int64_t i[3] = {};  // and in the integer domain
    bool divided_by_zero = false;
};
using Kernel = void (*)(Batch&);

struct Elementwise {
    std::span<const Input> inputs;
    std::size_t out_arg = 0;
    ScalarType compute = ScalarType::Float32;  ///< the domain of the inputs follows from it; integer results wrap to it
    ScalarType result =
        ScalarType::Float32;  ///< type of the kernel's results, before they are converted to the output's
    Kernel kernel = nullptr;
    bool first_input_is_bool = false;  ///< where: the condition is loaded as integers whatever `compute` is
};

/// Runs it; `batch` brings the constants.
[[nodiscard]] Result<void> run_elementwise(Arguments& args, const Elementwise& call, Batch& batch);

}  // namespace talpa::runtime::operators
