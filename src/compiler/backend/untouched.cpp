#include "compiler/backend/untouched.h"

#include <algorithm>

#include "npu_model/model.h"

namespace talpa::compiler {
namespace {

constexpr unsigned kRuns = 8;
// So many bytes of each output must change in each run. The runtime looks at no more than the first kilobyte.
constexpr std::uint64_t kChanged = 8, kWatched = 1024;

}  // namespace

bool may_look_untouched(const Plan& plan, const EncodedStream& stream, const Target& target) {
    npu_model::ModelOptions options;
    options.config = target.hardware->config;
    options.id = target.hardware->id;
    npu_model::Model model(options);
    std::vector<std::uint8_t> constants = plan.constants, before(plan.arena_bytes), arena, fast(plan.fast_bytes);
    npu::Job job;
    job.stream = stream.words;
    job.config = options.config;
    job.id = options.id;
    std::uint64_t random = 0x9E3779B97F4A7C15u;
    for (unsigned run = 0; run < kRuns; ++run) {
        for (std::uint8_t& byte : before) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            byte = static_cast<std::uint8_t>(random >> 32);
        }
        arena = before;
        if (!constants.empty()) job.regions[0] = {constants.data(), constants.size()};
        job.regions[1] = {arena.data(), arena.size()};
        if (target.fast_region() == 2 && !fast.empty()) job.regions[2] = {fast.data(), fast.size()};
        if (!model.run(job)) return true;
        for (const TensorId output : plan.network.outputs) {
            const std::uint64_t first = plan.tensors[output].address,
                                end = first + std::min(plan.network.tensors[output].bytes(), kWatched);
            std::uint64_t changed = 0;
            for (std::uint64_t i = first; i < end; ++i) changed += arena[i] != before[i] ? 1u : 0u;
            if (changed < kChanged) return true;
        }
    }
    return false;
}

}  // namespace talpa::compiler
