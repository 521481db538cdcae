#include "npu_model/weight_order.h"

namespace talpa::npu_model {

std::uint64_t symbol_count(const WeightOrder& w, unsigned core) {
    const CoreWeightOrder n(w, core);
    const std::uint32_t depth = w.bank_ifm_depth();
    // Sums over the independent loops of the walk; the count is the product of the sums.
    std::uint64_t elements = 0;
    for (std::uint32_t sy = 0; sy < w.kernel_height; sy += n.sub_height)
        for (std::uint32_t sx = 0; sx < w.kernel_width; sx += n.sub_width)
            elements +=
                round_up(std::min(n.sub_height, w.kernel_height - sy) * std::min(n.sub_width, w.kernel_width - sx),
                         n.element_step);
    std::uint64_t outputs = 0;
    const std::uint64_t full_blocks = n.ofm_depth / n.block_depth;
    outputs += full_blocks * round_up<std::uint32_t>(n.block_depth, w.ublock_depth);
    outputs += round_up<std::uint32_t>(n.ofm_depth % n.block_depth, w.ublock_depth);
    const std::uint64_t inputs = w.depthwise     ? 1
                                 : n.part_kernel ? round_up(depth, kIfmUblockDepth)
                                                 : round_up(depth, n.ifm_block);
    return elements * outputs * inputs;
}

bool place_weights(const WeightOrder& w, unsigned core, std::span<const std::int16_t> symbols,
                   std::span<std::int16_t> bank) {
    const std::int16_t* next = symbols.data();
    bool padding_is_zero = true;
    walk_weights(
        w, core,
        [&](std::uint32_t o, std::uint32_t ky, std::uint32_t kx, std::uint32_t i, std::uint32_t count) {
            const std::size_t at =
                ((std::size_t{o} * w.kernel_height + ky) * w.kernel_width + kx) * w.bank_ifm_depth() + i;
            std::copy_n(next, count, bank.data() + at);
            next += count;
        },
        [&](std::uint32_t count) {
            for (std::uint32_t n = 0; n < count; ++n) padding_is_zero &= *next++ == 0;
        });
    return padding_is_zero;
}

}  // namespace talpa::npu_model
