// A plan as the NPU's operations: registers, waits, block dependencies, and the stream of words. (ethos-u65, sections 3
// and 10.2)
#pragma once

#include <cstdint>
#include <vector>

#include "base/host/error.h"
#include "compiler/schedule/plan.h"

namespace talpa::compiler {

struct EmittedOperation {
    npu::Operation op;
    std::int32_t step = -1;       ///< of the network; -1: a wait or STOP
    std::uint32_t first_row = 0;  ///< a kernel: of the step's OFM view
};

/// Every operation in order, waits and STOP included.
[[nodiscard]] std::vector<EmittedOperation> emit_operations(const Plan& plan, const Target& target);

struct EncodedStream {
    std::vector<std::uint32_t> words;
    std::vector<std::uint32_t> offsets;  ///< of each operation's command word, in bytes
};
[[nodiscard]] host::Result<EncodedStream> encode_operations(const std::vector<EmittedOperation>& operations,
                                                            const Target& target);

}  // namespace talpa::compiler
