#include "npu_model/cycles/transfer.h"

#include <algorithm>

#include "base/core/checked_math.h"
#include "npu/block.h"

namespace talpa::npu_model {
namespace {

// Rows (or columns) of the IFM that are fetched for all blocks along one axis: each block's window, cut at the borders,
// once for every sub-kernel of at most 8.
std::uint64_t fetched_extent(std::uint32_t ofm, std::uint32_t block, std::uint32_t stride, std::uint32_t kernel,
                             std::uint32_t dilation, std::uint32_t pad, std::uint32_t ifm, npu::Upscale upscale) {
    constexpr std::uint32_t kSub = 8;
    const std::int64_t factor = upscale == npu::Upscale::None ? 1 : 2;
    constexpr std::uint64_t kMostSteps = 1 << 16;  // only nonsense has more: there borders are not looked at
    const std::uint64_t subs = ceil_div<std::uint64_t>(kernel, kSub), blocks = ceil_div<std::uint64_t>(ofm, block);
    if (subs * blocks > kMostSteps)
        return subs * blocks * std::min<std::uint64_t>(ifm, (std::uint64_t{block} - 1) * stride + kSub);
    std::uint64_t total = 0;
    for (std::uint32_t sub = 0; sub < kernel; sub += kSub) {
        const std::int64_t first_tap = std::int64_t{sub} * dilation - pad;
        const std::int64_t taps = (std::int64_t{std::min(kernel - sub, kSub)} - 1) * dilation;
        for (std::uint32_t at = 0; at < ofm; at += block) {
            const std::int64_t last = std::min(at + block, ofm) - 1;
            const std::int64_t from = std::max<std::int64_t>(0, std::int64_t{at} * stride + first_tap) / factor;
            const std::int64_t to = std::min<std::int64_t>(ifm, (last * stride + first_tap + taps) / factor + 1);
            if (to > from) total += static_cast<std::uint64_t>(to - from);
        }
    }
    return total;
}

}  // namespace

std::uint64_t stored_depth(const npu::FeatureMap& fm) {
    return fm.layout == npu::Layout::Nhcwb16 ? ceil_div<std::uint64_t>(fm.depth, 16) * 16 : fm.depth;
}

std::uint64_t stored_elements(const npu::FeatureMap& fm) {
    return stored_depth(fm) * fm.height * fm.width;
}

std::uint32_t run_bytes(const npu::FeatureMap& fm, const npu::BlockShape& block, Direction direction,
                        std::uint32_t cores) {
    constexpr std::uint32_t kBrick = 16, kWriteLimit = 64;
    const std::uint32_t es = fm.type.bytes;
    const bool full_depth = fm.depth == block.depth;
    std::uint32_t run;
    if (fm.layout == npu::Layout::Nhcwb16)
        run = kBrick * es * block.width * (direction == Direction::Write ? cores : 1);
    else if (direction == Direction::Read)
        run = full_depth ? block.depth * block.width * es : block.depth * es;
    else if (full_depth && block.depth <= kBrick)
        run = block.depth * block.width * es;
    else
        run = std::min({kWriteLimit, kBrick * es * cores, block.depth * es});
    return std::max(run, 1u);
}

std::uint64_t bus_bytes(std::uint64_t bytes, std::uint32_t run, const MemoryTiming& memory) {
    return run >= memory.burst_bytes ? bytes : bytes * memory.burst_bytes / run;
}

std::uint64_t add_transfer(OperationCost& cost, MemoryArea area, Direction direction, std::uint64_t bytes,
                           std::uint32_t run, const SystemConfig& config) {
    const MemoryTiming& memory = config.timing(area);
    const std::uint64_t bus = bus_bytes(bytes, run, memory);
    Traffic& traffic = cost.traffic[index(area)];
    (direction == Direction::Read ? traffic.read_bytes : traffic.write_bytes) += bytes;
    (direction == Direction::Read ? traffic.bus_read_bytes : traffic.bus_write_bytes) += bus;
    traffic.bursts += (bus + memory.burst_bytes - 1) / memory.burst_bytes;
    return bus;
}

void feature_map_traffic(OperationCost& cost, const npu::Operation& op, const SystemConfig& config) {
    const npu::BlockShape ifm = npu::ifm_block(op, *config.npu.hardware),
                          ofm{op.block_height, op.block_width, op.block_depth};
    const std::uint32_t cores = config.npu.hardware->cores;
    std::uint64_t ifm_elements = stored_elements(op.ifm), ifm2_elements = 0;
    if (npu::is_elementwise(op.kind)) {
        if (npu::has_ifm2(op.kind) && !op.ifm2_is_scalar) ifm2_elements = stored_elements(op.ifm2);
    } else {
        // A block's input is fetched again for every OFM block that needs it, and for every sub-kernel.
        const npu::Kernel& k = op.kernel;
        ifm_elements = stored_depth(op.ifm) *
                       fetched_extent(op.ofm.height, op.block_height, k.stride_y, k.height, k.dilation_y,
                                      op.padding.top, op.ifm.height, op.upscale) *
                       fetched_extent(op.ofm.width, op.block_width, k.stride_x, k.width, k.dilation_x, op.padding.left,
                                      op.ifm.width, op.upscale);
        if (npu::sums_over_depth(op.kind)) ifm_elements *= ceil_div<std::uint64_t>(op.ofm.depth, op.block_depth);
    }
    add_transfer(cost, config.area_of(op.ifm.region), Direction::Read, ifm_elements * op.ifm.type.bytes,
                 run_bytes(op.ifm, ifm, Direction::Read, cores), config);
    if (ifm2_elements != 0)
        add_transfer(cost, config.area_of(op.ifm2.region), Direction::Read, ifm2_elements * op.ifm2.type.bytes,
                     run_bytes(op.ifm2, ifm, Direction::Read, cores), config);
    add_transfer(cost, config.area_of(op.ofm.region), Direction::Write, stored_elements(op.ofm) * op.ofm.type.bytes,
                 run_bytes(op.ofm, ofm, Direction::Write, cores), config);
}

// Weights and scales are contiguous, and read again for every block in height and width.
void constant_traffic(OperationCost& cost, const npu::Operation& op, const SystemConfig& config) {
    if (!npu::has_weights(op.kind)) return;
    const std::uint64_t passes = ceil_div<std::uint64_t>(op.ofm.height, std::min(op.block_height, op.ofm.height)) *
                                 ceil_div<std::uint64_t>(op.ofm.width, std::min(op.block_width, op.ofm.width));
    for (unsigned core = 0; core < npu::kMaxCores; ++core) {
        if (op.weights[core].size != 0)
            add_transfer(cost, config.area_of(op.weight_region), Direction::Read, passes * op.weights[core].size,
                         1u << 16, config);
        if (op.scales[core].size != 0)
            add_transfer(cost, config.area_of(op.scale_region), Direction::Read, passes * op.scales[core].size,
                         1u << 16, config);
    }
}

void copy_operation(OperationCost& cost, const npu::Operation& op, const SystemConfig& config) {
    const npu::Dma& dma = op.dma;
    std::uint64_t bytes = dma.length;
    if (dma.dimensions() >= 1) bytes *= std::max(dma.size0, 1u);
    if (dma.dimensions() >= 2) bytes *= std::max(dma.size1, 1u);
    const auto run =
        static_cast<std::uint32_t>(std::clamp<std::uint64_t>(dma.dimensions() == 0 ? bytes : dma.length, 1, 1u << 16));
    double from = 0, to = 0;
    if (!dma.src_internal) {
        const MemoryArea area = config.area_of(dma.src_region);
        from = static_cast<double>(add_transfer(cost, area, Direction::Read, bytes, run, config)) /
                   config.timing(area).bytes_per_cycle +
               config.timing(area).read_latency;
    }
    if (!dma.dst_internal) {
        const MemoryArea area = config.area_of(dma.dst_region);
        to = static_cast<double>(add_transfer(cost, area, Direction::Write, bytes, run, config)) /
                 config.timing(area).bytes_per_cycle +
             config.timing(area).write_latency;
    }
    cost.cycles = to_count(std::max(from, to));
    cost.bound = Bound::Dma;
}

}  // namespace talpa::npu_model
