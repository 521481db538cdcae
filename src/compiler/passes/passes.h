// What brings a graph as its file has it into the one form that quantization and lowering read. Each pass takes and
// leaves a graph that check.h accepts; canonicalize() runs them in order.
#pragma once

#include <functional>

#include "base/host/error.h"
#include "compiler/graph/graph.h"

namespace talpa::compiler {

/// Channels-last for good: permutes move through everything that can do without them and meet their inverse. What is
/// left stands where the network itself asks for it, or once at an input or output.
[[nodiscard]] host::Result<void> layout(Graph& graph);

/// Reshapes move behind elementwise operators and batch norms, so that these meet the operator before them.
[[nodiscard]] host::Result<void> sink_reshapes(Graph& graph);

/// Batch norms go into the weights of the convolution or fully connected layer before them; others become a
/// multiplication and an addition.
[[nodiscard]] host::Result<void> fold_batch_norms(Graph& graph);

/// A clamp (relu, relu6, hardtanh …) joins the operator before it, if nothing else reads that.
void fuse_clamps(Graph& graph);

/// A Requantize of an unquantized result joins the operator that makes it: quantize after an operator becomes the
/// quantization of its result.
void fuse_quantizations(Graph& graph);

/// Padding by zeros becomes the padding of the convolution that reads it.
void fold_pads(Graph& graph);

/// A permute before the flattening in front of a fully connected layer goes into the order of its weights.
[[nodiscard]] host::Result<void> fold_flatten(Graph& graph);

/// Drops nodes that no output needs and values that nothing names. Inputs stay.
void remove_dead(Graph& graph);

/// All of them. `after` is called with each stage's name.
[[nodiscard]] host::Result<void> canonicalize(Graph& graph,
                                              const std::function<void(const char* stage, const Graph&)>& after = {});

}  // namespace talpa::compiler
