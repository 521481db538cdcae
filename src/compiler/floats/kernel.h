// What a kernel of the float executor sees of its node. Shapes have been checked when the executor was made.
#pragma once

#include <span>
#include <vector>

#include "compiler/graph/graph.h"

namespace talpa::compiler {

struct KernelCall {
    const Graph& graph;
    const Node& node;
    std::vector<std::span<const float>> inputs;  ///< empty: left out
    std::span<float> output;                     ///< of the node's only result
    const std::vector<float>* packed = nullptr;  ///< what `pack` made of the weights
    std::vector<float>& scratch;

    [[nodiscard]] const Shape& shape(std::size_t input) const { return graph[node.inputs[input]].shape; }
    [[nodiscard]] const Shape& out_shape() const { return graph[node.outputs[0]].shape; }
    [[nodiscard]] bool has(std::size_t input) const { return input < inputs.size() && inputs[input].data() != nullptr; }
};

using Kernel = void (*)(KernelCall&);
/// Null: the operator has no float kernel.
[[nodiscard]] Kernel find_kernel(Op op);

// By family, a file each.
void conv2d(KernelCall& call);
void conv_transpose2d(KernelCall& call);
void fully_connected(KernelCall& call);
void matmul(KernelCall& call);
void max_pool2d(KernelCall& call);
void avg_pool2d(KernelCall& call);
void resize(KernelCall& call);
void reduce(KernelCall& call);
void argmax(KernelCall& call);
void cumsum(KernelCall& call);
void softmax(KernelCall& call);
void layer_norm(KernelCall& call);
void group_norm(KernelCall& call);
void batch_norm(KernelCall& call);
void binary(KernelCall& call);
void unary(KernelCall& call);
void prelu(KernelCall& call);
void concat(KernelCall& call);
void slice(KernelCall& call);
void pad(KernelCall& call);
void copy(KernelCall& call);
void permute(KernelCall& call);
void expand(KernelCall& call);
void gather(KernelCall& call);

/// The weights of a node in the order its kernel reads them; empty where it takes them as they are.
[[nodiscard]] std::vector<float> pack_weights(const Graph& graph, const Node& node, std::span<const float> weights);
/// K x N, C order, to panels (hot_kernels.h).
[[nodiscard]] std::vector<float> pack_columns(std::span<const float> matrix, std::size_t k, std::size_t n);

/// Strides with which a tensor of `shape` is read as if broadcast to `to`: 0 where it repeats.
[[nodiscard]] std::vector<std::int64_t> broadcast_strides(const Shape& shape, const Shape& to);
/// Clamp bounds as floats.
[[nodiscard]] inline float low(const Clamp& clamp) {
    return static_cast<float>(clamp.min);
}
[[nodiscard]] inline float high(const Clamp& clamp) {
    return static_cast<float>(clamp.max);
}

/// Calls f(output index, source offset) for every element of `shape`, in C order, where the source is read by
/// `strides`.
template <typename F>
void for_each_strided(const Shape& shape, const std::vector<std::int64_t>& strides, std::int64_t offset, F&& f) {
    const std::size_t rank = shape.size();
    const auto count = element_count(shape);
    std::vector<std::int64_t> index(rank, 0);
    const std::int64_t inner = rank == 0 ? 1 : shape[rank - 1];
    const std::int64_t inner_stride = rank == 0 ? 0 : strides[rank - 1];
    for (std::int64_t i = 0; i < count; i += inner) {
        for (std::int64_t j = 0; j < inner; ++j) f(i + j, offset + j * inner_stride);
        for (std::size_t d = rank - 1; d-- > 0 && rank > 1;) {
            offset += strides[d];
            if (++index[d] < shape[d]) break;
            offset -= strides[d] * shape[d];
            index[d] = 0;
        }
    }
}

}  // namespace talpa::compiler
