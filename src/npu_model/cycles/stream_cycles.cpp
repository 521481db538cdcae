#include "npu_model/cycles/stream_cycles.h"

#include <algorithm>

#include "npu_model/cycles/network_cost.h"

namespace talpa::npu_model {

std::uint64_t StreamCycles::of(npu::Words stream) {
    if (std::ranges::equal(stream, words_)) return cycles_;
    words_.assign(stream.begin(), stream.end());
    const auto operations = decode_all(stream);
    cycles_ = operations ? network_cost(*operations, config_).cycles_total : 0;
    return cycles_;
}

}  // namespace talpa::npu_model
