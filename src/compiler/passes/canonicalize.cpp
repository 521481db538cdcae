#include "compiler/graph/check.h"
#include "compiler/passes/passes.h"

namespace talpa::compiler {

host::Result<void> canonicalize(Graph& graph, const std::function<void(const char*, const Graph&)>& after) {
    const auto done = [&](const char* stage) -> host::Result<void> {
        TRY(host::with_context(check_graph(graph), stage));
        if (after) after(stage, graph);
        return {};
    };
    remove_dead(graph);
    TRY(done("import"));
    TRY(layout(graph));
    remove_dead(graph);
    TRY(sink_reshapes(graph));
    remove_dead(graph);
    TRY(done("layout"));
    TRY(fold_batch_norms(graph));
    TRY(done("batch-norm"));
    fuse_clamps(graph);
    fuse_quantizations(graph);
    fuse_clamps(graph);
    TRY(done("fuse"));
    fold_pads(graph);
    TRY(fold_flatten(graph));
    return done("canonical");
}

}  // namespace talpa::compiler
