// Command streams of a stranger on small regions: the model must end soon, with success or an error, touch nothing
// outside its regions (each is an allocation of its own, so that the sanitizer sees it) and leave region 0 alone.
// Input: configuration byte, flags byte, number of stream words (2 bytes), region sizes in 64 bytes (8 bytes), the
// words, the content of region 0, then that of region 1.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "base/core/byte_reader.h"
#include "npu/hardware.h"
#include "npu_model/model.h"

using namespace talpa;
using namespace talpa::npu_model;

namespace {

struct Free {
    void operator()(std::uint8_t* p) const { std::free(p); }
};

void run(Bytes input, Kernels kernels) {
    const std::uint8_t flags = input[1];
    const std::size_t word_count = load_le<std::uint16_t>(input.data() + 2);
    const Bytes sizes = input.subspan(4, 8);
    Bytes rest = input.subspan(12);
    std::vector<std::uint32_t> words;
    for (; words.size() < word_count && rest.size() >= 4; rest = rest.subspan(4))
        words.push_back(load_le<std::uint32_t>(rest.data()));

    npu::Job job;
    job.stream = words;
    std::array<std::unique_ptr<std::uint8_t, Free>, npu::kRegionCount> memory;
    for (std::size_t r = 0; r < npu::kRegionCount; ++r) {
        const std::size_t size = std::size_t{64} * sizes[r];
        if (size == 0) continue;
        memory[r].reset(static_cast<std::uint8_t*>(std::aligned_alloc(64, size)));
        std::memset(memory[r].get(), 0x5A, size);
        const std::size_t given = std::min(size, rest.size());
        if (r < 2 && given > 0) {
            std::memcpy(memory[r].get(), rest.data(), given);
            rest = rest.subspan(given);
        }
        job.regions[r] = {memory[r].get(), size};
    }
    const std::vector<std::uint8_t> constants(job.regions[0].data, job.regions[0].data + job.regions[0].size);

    ModelOptions options;
    options.config = npu::kHardware[input[0] % npu::kHardware.size()].config;
    options.kernels = kernels;
    options.checks = (flags & 1) != 0 ? DataChecks::Strict : DataChecks::Off;
    options.work_limit = 1 << 21;
    options.filter_cache_bytes = 1 << 16;
    Model model(options);
    if ((flags & 2) != 0) model.set_initialised({{1, {0, job.regions[1].size}}, {2, {0, job.regions[2].size}}});
    static_cast<void>(model.run(job));
    if (!constants.empty() && std::memcmp(constants.data(), job.regions[0].data, constants.size()) != 0) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 16) return 0;
    run({data, size}, Kernels::Fast);
    run({data, size}, Kernels::Reference);
    return 0;
}
