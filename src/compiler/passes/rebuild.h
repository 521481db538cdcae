// For passes that walk a graph once and build another: inputs, constants and results are carried over, and the pass
// says what becomes of each node.
#pragma once

#include "compiler/graph/builder.h"
#include "compiler/graph/graph.h"

namespace talpa::compiler {

class Rebuild {
  public:
    explicit Rebuild(const Graph& old);
    virtual ~Rebuild() = default;
    /// The new graph.
    [[nodiscard]] host::Result<Graph> run();

  protected:
    [[nodiscard]] virtual host::Result<void> node(const Node& node) = 0;
    /// The new value that stands for an old one, as it is.
    [[nodiscard]] virtual host::Result<ValueId> plain(ValueId old) = 0;
    /// An input or constant is taken over as `id`.
    virtual void carried(ValueId old, ValueId id) = 0;

    /// The node unchanged, on the plain values of its operands; its result keeps type and quantization.
    [[nodiscard]] host::Result<ValueId> copy(const Node& node);
    /// As Builder::add, and the result gets the old result's type and quantization.
    [[nodiscard]] host::Result<ValueId> add_like(const Node& node, std::vector<ValueId> operands, Attributes attributes,
                                                 const Shape& asked = {});

    const Graph& old_;
    Graph made_;
    Builder build_;
};

}  // namespace talpa::compiler
