#include "npu_model/cycles/transfer.h"

#include <algorithm>

namespace talpa::npu_model {

std::uint32_t run_bytes(const npu::FeatureMap& fm, const BlockShape& block, Direction direction, std::uint32_t cores) {
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

}  // namespace talpa::npu_model
