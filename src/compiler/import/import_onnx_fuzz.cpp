// Any bytes as a .onnx.
#include <cstddef>
#include <cstdlib>

#include "compiler/graph/check.h"
#include "compiler/import/onnx/onnx.h"
#include "compiler/passes/passes.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace talpa::compiler;
    auto graph = import::onnx::read({data, size}, "/nonexistent", {});
    if (!graph) return 0;
    if (canonicalize(*graph) && !check_graph(*graph)) std::abort();
    return 0;
}
