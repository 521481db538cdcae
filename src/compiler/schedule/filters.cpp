#include "compiler/schedule/filters.h"

#include <algorithm>
#include <atomic>
#include <thread>

namespace talpa::compiler {

EncodedFilter encode_filter(const Step& step, const Block& block, const npu::Hardware& hw) {
    const Filter& f = *step.filter;
    StreamOrder order;
    order.block_depth = block.depth;
    order.dilation_y = step.op.kernel.dilation_y;
    order.dilation_x = step.op.kernel.dilation_x;
    order.depthwise = f.depthwise;
    order.part_kernel_first = block.part_kernel_first;
    order.ifm_16bit = step.op.ifm.type.bytes == 2;
    order.ofm_ublock_depth = hw.ublock_depth;
    order.cores = hw.cores;
    EncodedFilter e;
    for (unsigned core = 0; core < hw.cores; ++core) {
        if (core >= f.shape.ofm_depth) continue;  // that core idles
        const auto records = encode_records(f.records, core, hw.cores);
        e.scales[core] = {e.bytes.size(), records.size()};
        e.bytes.insert(e.bytes.end(), records.begin(), records.end());
        const auto stream = encode_weights(stream_symbols(f.weights, f.shape, order, 0, f.shape.ofm_depth, core));
        e.weights[core] = {e.bytes.size(), stream.size()};
        e.bytes.insert(e.bytes.end(), stream.begin(), stream.end());
    }
    return e;
}

std::uint64_t estimated_weight_bytes(const Step& step) {
    return (step.filter->shape.size() * 15 / 16 + 47) / 16 * 16;
}

std::uint64_t record_bytes(const Step& step) {
    return (step.filter->records.size() * kScaleRecordBytes + 15) / 16 * 16;
}

std::vector<EncodedFilter> FilterEncoder::encode(const Network& n, const std::vector<Block>& blocks) {
    const auto key = [&](std::size_t i) {
        return Key{n.steps[i].filter.get(), blocks[i].depth, blocks[i].part_kernel_first};
    };
    std::vector<std::size_t> work;
    for (std::size_t i = 0; i < n.steps.size(); ++i)
        if (n.steps[i].filter && known_.try_emplace(key(i)).second) work.push_back(i);
    // The largest first, so that threads end together.
    std::stable_sort(work.begin(), work.end(), [&](std::size_t a, std::size_t b) {
        return n.steps[a].filter->weights.size() > n.steps[b].filter->weights.size();
    });
    std::vector<EncodedFilter> made(work.size());
    std::atomic<std::size_t> next{0};
    const auto worker = [&] {
        for (std::size_t i = next++; i < work.size(); i = next++)
            made[i] = encode_filter(n.steps[work[i]], blocks[work[i]], hardware_);
    };
    {
        std::vector<std::jthread> threads;
        const unsigned count = std::min(8u, std::max(1u, std::thread::hardware_concurrency()));
        for (unsigned i = 1; i < count && work.size() > 4; ++i) threads.emplace_back(worker);
        worker();
    }
    for (std::size_t i = 0; i < work.size(); ++i) known_[key(work[i])] = std::move(made[i]);
    std::vector<EncodedFilter> out(n.steps.size());
    for (std::size_t i = 0; i < n.steps.size(); ++i)
        if (n.steps[i].filter) out[i] = known_[key(i)];
    return out;
}

}  // namespace talpa::compiler
