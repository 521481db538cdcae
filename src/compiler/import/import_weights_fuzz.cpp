// Any bytes as a file of weights: a state dict in either container, or safetensors. Every tensor is gathered.
#include <cstddef>

#include "compiler/import/weights_file/weights.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace talpa::compiler::import;
    for (const auto read : {read_state_dict, read_safetensors}) {
        const auto weights = read({data, size});
        if (!weights) continue;
        std::size_t bytes = 0;
        for (const auto& [name, tensor] : weights->tensors) {
            const auto value = load_tensor(name, tensor, Finite::Any);
            if (value) bytes += value->constant->size();
            if (bytes > (64u << 20)) break;  // many views of one storage; each is bounded on its own
        }
    }
    return 0;
}
