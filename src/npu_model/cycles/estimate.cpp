// One operation: MAC and output cycles a block, their overlap, and what the blocks move (ethos-u65, sections 8.1
// to 8.4).
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "base/core/checked_math.h"
#include "npu/block.h"
#include "npu_model/cycles/operation_cost.h"
#include "npu_model/cycles/transfer.h"

namespace talpa::npu_model {
namespace {

using npu::OpKind;

bool pools(OpKind k) {
    return k == OpKind::MaxPool || k == OpKind::AvgPool;
}
std::uint64_t elements(const npu::BlockShape& block) {
    return std::uint64_t{block.height} * block.width * block.depth;
}

npu::BlockShape clip(const npu::BlockShape& block, const npu::FeatureMap& fm) {
    return {std::min(block.height, fm.height), std::min(block.width, fm.width), std::min(block.depth, fm.depth)};
}

// A block's ublocks, and how many such blocks the OFM amounts to (a fraction: the last one of a row may be small).
struct Ublocks {
    std::uint64_t xy = 1, z = 1;
    double blocks = 1;
};

Ublocks ublocks(const npu::Operation& op, const npu::BlockShape& block, const npu::Hardware& npu) {
    std::uint32_t height = npu.ublock_height, width = npu.ublock_width;
    // A single row uses the four positions of a 2 x 2 ublock as 1 x 4 (section 8.2).
    if (height == 2 && op.kind == OpKind::Conv && op.ofm.height == 1 && op.kernel.height == 1 &&
        op.ofm.width % 2 == 0) {
        height = 1;
        width = 4;
    }
    Ublocks u;
    u.xy = ceil_div<std::uint64_t>(block.height, height) * ceil_div<std::uint64_t>(block.width, width);
    u.z = ceil_div<std::uint64_t>(block.depth, npu.ublock_depth);
    const auto all = ceil_div<std::uint64_t>(op.ofm.height, height) * ceil_div<std::uint64_t>(op.ofm.width, width) *
                     ceil_div<std::uint64_t>(op.ofm.depth, npu.ublock_depth);
    u.blocks = static_cast<double>(all) / static_cast<double>(u.xy * u.z);
    return u;
}

struct MacCycles {
    std::uint64_t macs = 0;      // if weights are always there
    std::uint64_t weighted = 0;  // with the time to bring the weights of a step
};

// One OFM block, all its sub-kernels of at most 8 x 8 and IFM depth blocks (section 8.2).
MacCycles mac_cycles_per_block(const npu::Operation& op, const Ublocks& u, const npu::BlockShape& ifm,
                               const npu::Hardware& npu) {
    const std::uint64_t weight_step = 4ull * npu.ublock_depth;  // 32: bringing 8 x 8 weights
    const bool part_kernel = op.kind == OpKind::Conv && op.kernel.part_kernel_first;
    const bool acc40 = op.acc_format == npu::AccFormat::Int40;
    const std::uint64_t ifm_bytes = op.ifm.type.bytes;
    const std::uint64_t pipeline = npu.macs == 32 ? (acc40 ? 7 : 3) : (acc40 && npu.macs <= 128 ? 3 : 2);
    MacCycles total;
    // Sub-kernels are full ones of 8, and what is left: at most two extents each way.
    const auto parts = [](std::uint32_t extent) {
        constexpr std::uint32_t kSub = 8;
        return std::array<std::pair<std::uint64_t, std::uint64_t>, 2>{
            {{kSub, extent / kSub}, {extent % kSub, extent % kSub != 0 ? 1 : 0}}};
    };
    for (const auto& [rows, down] : parts(op.kernel.height)) {
        for (const auto& [columns, across] : parts(op.kernel.width)) {
            const std::uint64_t count = down * across, taps = rows * columns;
            if (count == 0) continue;
            std::uint64_t steps = 1, repeats = u.z, per_step = 4 * u.xy;
            bool weights = true;
            if (pools(op.kind)) {
                per_step = std::max<std::uint64_t>(4, taps) * u.xy * ifm_bytes;
                weights = false;
            } else if (op.kind == OpKind::Depthwise) {
                steps = ceil_div<std::uint64_t>(taps, 4);
                per_step *= ifm_bytes;
            } else if (part_kernel) {
                steps = ceil_div<std::uint64_t>(taps, ifm_bytes == 2 ? 2 : 4);
                repeats *= ceil_div<std::uint64_t>(ifm.depth, 8);
            } else {
                steps = taps;
            }
            // A block of one ublock cannot hide the pipeline's depth behind its neighbours.
            std::uint64_t delay = 0;
            if (u.xy == 1) delay = u.z == 1 ? pipeline * steps : pipeline * (steps - 1) * u.z;
            if (part_kernel) delay *= ceil_div<std::uint64_t>(ifm.depth, 8);
            total.macs += count * (per_step * steps * repeats + delay);
            total.weighted +=
                count * ((weights ? std::max(weight_step, per_step) : per_step) * steps * repeats + delay);
        }
    }
    const std::uint64_t depth_blocks =
        npu::sums_over_depth(op.kind) ? ceil_div<std::uint64_t>(op.ifm.depth, ifm.depth) : 1;
    total.macs = total.macs * depth_blocks / npu.cores;
    total.weighted = total.weighted * depth_blocks / npu.cores;
    return total;
}

double output_cycles_per_element(const npu::Operation& op, const NpuConfig& npu) {
    const auto& rate = npu.output;
    double output = rate.other;
    const bool elementwise = npu::is_elementwise(op.kind);
    if (elementwise && op.ifm.type.bytes == 4)
        output = npu::has_ifm2(op.kind) ? rate.binary32 : rate.unary32;
    else if (op.kind == OpKind::Mul)
        output = op.ofm.type.bytes == 4 ? rate.mul32 : rate.mul_or_acc40;
    else if (!elementwise && op.acc_format == npu::AccFormat::Int40)
        output = rate.mul_or_acc40;
    else if (op.kind == OpKind::Add || op.kind == OpKind::Sub)
        output = rate.add_advanced;
    else if (op.kind == OpKind::MaxPool)
        output = rate.max_pool;
    const bool table = op.activation.function != npu::Activation::Function::None;
    return std::max(output, table ? npu.activation.lut : npu.activation.none);
}

// Cycles to fetch the inputs of one block, or to store its output: latency, and bursts over bandwidth.
std::uint64_t block_transfer(const npu::FeatureMap& fm, const npu::BlockShape& block, Direction direction,
                             const SystemConfig& config) {
    const MemoryTiming& memory = config.timing(config.area_of(fm.region));
    const std::uint64_t bytes = elements(clip(block, fm)) * fm.type.bytes;
    const std::uint64_t bus = bus_bytes(bytes, run_bytes(fm, block, direction, config.npu.hardware->cores), memory);
    return to_count(static_cast<double>(bus) / memory.bytes_per_cycle) +
           (direction == Direction::Read ? memory.read_latency : memory.write_latency);
}

struct BlockMemory {
    std::uint64_t fetch = 0, store = 0;
};

BlockMemory block_memory(const npu::Operation& op, const SystemConfig& config) {
    const npu::BlockShape ifm = npu::ifm_block(op, *config.npu.hardware);
    BlockMemory m;
    m.fetch = block_transfer(op.ifm, ifm, Direction::Read, config);
    if (npu::has_ifm2(op.kind) && !op.ifm2_is_scalar)
        m.fetch = std::max(m.fetch, block_transfer(op.ifm2, ifm, Direction::Read, config));
    m.store = block_transfer(op.ofm, {op.block_height, op.block_width, op.block_depth}, Direction::Write, config);
    return m;
}

void mac_operation(OperationCost& cost, const npu::Operation& op, const SystemConfig& config) {
    const npu::BlockShape ifm = clip(npu::ifm_block(op, *config.npu.hardware), op.ifm);
    const npu::BlockShape ofm = clip({op.block_height, op.block_width, op.block_depth}, op.ofm);
    const Ublocks u = ublocks(op, ofm, *config.npu.hardware);
    const MacCycles mac = mac_cycles_per_block(op, u, ifm, *config.npu.hardware);
    const double output = std::ceil(output_cycles_per_element(op, config.npu) * static_cast<double>(elements(ofm)));
    double bias = 0;
    if (npu::has_weights(op.kind) && op.scales[0].size != 0)
        bias = 10.0 * ofm.depth * config.timing(config.area_of(op.scale_region)).read_latency / 256;
    const double out = std::max(output, bias);
    const auto macs = static_cast<double>(mac.weighted);
    // Fetching block n + 1 overlaps storing block n - 1; what they differ by is left to wait for, by one of four.
    const BlockMemory memory = block_memory(op, config);
    const auto waiting =
        static_cast<double>(std::max(memory.fetch, memory.store) - std::min(memory.fetch, memory.store));
    const double command = ((u.blocks > 1 ? waiting : 0) + macs + out) / 4;
    const double slow = std::max({macs, out, command});
    const double fast = std::max(std::min(macs, out), command);

    cost.blocks = ceil_div<std::uint64_t>(op.ofm.height, ofm.height) *
                  ceil_div<std::uint64_t>(op.ofm.width, ofm.width) * ceil_div<std::uint64_t>(op.ofm.depth, ofm.depth);
    cost.mac_cycles = to_count(static_cast<double>(mac.macs) * u.blocks);
    cost.weight_cycles = to_count(macs * u.blocks);
    cost.output_cycles = to_count(out * u.blocks);
    cost.command_cycles = to_count(command * u.blocks);
    cost.fill_cycles = memory.fetch;
    cost.drain_cycles = memory.store;
    cost.npu_cycles = to_count(slow * u.blocks + fast) + memory.fetch + memory.store;

    if (is_transposing_copy(op)) return;
    cost.macs = std::uint64_t{op.kernel.height} * op.kernel.width * op.ofm.height * op.ofm.width * op.ofm.depth;
    if (npu::sums_over_depth(op.kind)) cost.macs *= op.ifm.depth;
}

void elementwise_operation(OperationCost& cost, const npu::Operation& op, const SystemConfig& config) {
    const npu::BlockShape block{op.block_height, op.block_width, op.block_depth};
    const auto stored = static_cast<double>(stored_elements(op.ofm));
    const double rate = output_cycles_per_element(op, config.npu);
    const BlockMemory memory = block_memory(op, config);
    const auto busy = static_cast<double>(std::max(memory.fetch, memory.store));
    const double command = (busy / static_cast<double>(elements(block)) + rate) / 4;
    cost.blocks = ceil_div<std::uint64_t>(op.ofm.height, block.height) *
                  ceil_div<std::uint64_t>(op.ofm.width, block.width) *
                  ceil_div<std::uint64_t>(op.ofm.depth, block.depth);
    cost.output_cycles = to_count(std::ceil(rate * stored));
    cost.command_cycles = to_count(std::ceil(command * stored));
    cost.npu_cycles = std::max(cost.output_cycles, cost.command_cycles);
}

void count_memory_cycles(OperationCost& cost, const SystemConfig& config) {
    for (std::size_t area = 0; area < kMemoryAreas; ++area)
        cost.memory_cycles[area] =
            to_count(static_cast<double>(cost.traffic[area].bus_bytes()) / config.memory[area].bytes_per_cycle);
}

}  // namespace

bool is_transposing_copy(const npu::Operation& op) {
    const bool copies = op.kind == OpKind::AvgPool && op.kernel.height == 1 && op.kernel.width == 1 &&
                        op.kernel.stride_x == 1 && op.kernel.stride_y == 1;
    const auto permuted = [](const npu::FeatureMap& fm) { return std::abs(fm.stride_y) < std::abs(fm.stride_x); };
    return copies && op.ofm.height > 1 && op.ofm.width > 1 && permuted(op.ofm) != permuted(op.ifm);
}

const char* bound_name(Bound bound) {
    static constexpr const char* kNames[] = {"none", "mac", "weights", "output", "command", "sram", "dram", "dma"};
    return kNames[static_cast<std::size_t>(bound)];
}

Traffic& Traffic::operator+=(const Traffic& o) {
    read_bytes += o.read_bytes;
    write_bytes += o.write_bytes;
    bus_read_bytes += o.bus_read_bytes;
    bus_write_bytes += o.bus_write_bytes;
    bursts += o.bursts;
    return *this;
}

void settle(OperationCost& c) {
    const std::uint64_t sram = c.memory_cycles[index(MemoryArea::Sram)],
                        dram = c.memory_cycles[index(MemoryArea::Dram)];
    c.cycles = std::max({c.npu_cycles, sram, dram});
    if (dram > c.npu_cycles && dram >= sram)
        c.bound = Bound::Dram;
    else if (sram > c.npu_cycles)
        c.bound = Bound::Sram;
    else if (std::max(c.command_cycles, c.fill_cycles + c.drain_cycles) >= std::max(c.weight_cycles, c.output_cycles))
        c.bound = Bound::Command;
    else if (c.output_cycles >= c.weight_cycles)
        c.bound = Bound::Output;
    else
        c.bound = c.weight_cycles > c.mac_cycles ? Bound::Weights : Bound::Mac;
}

OperationCost estimate(const npu::Operation& op, const SystemConfig& config) {
    OperationCost cost;
    if (op.kind == OpKind::Dma) {
        copy_operation(cost, op, config);
        count_memory_cycles(cost, config);
        return cost;
    }
    if (!npu::is_kernel(op.kind)) return cost;
    if (npu::is_elementwise(op.kind))
        elementwise_operation(cost, op, config);
    else
        mac_operation(cost, op, config);
    feature_map_traffic(cost, op, config);
    constant_traffic(cost, op, config);
    count_memory_cycles(cost, config);
    settle(cost);
    return cost;
}

}  // namespace talpa::npu_model
