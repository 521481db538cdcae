// Any bytes as a .tflite.
#include <cstddef>
#include <cstdlib>

#include "compiler/graph/check.h"
#include "compiler/import/tflite/tflite.h"
#include "compiler/passes/passes.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace talpa::compiler;
    auto graph = import::tflite::read({data, size}, {});
    if (!graph) return 0;
    if (canonicalize(*graph) && !check_graph(*graph)) std::abort();
    return 0;
}
