// What moving a feature map's blocks costs on the bus: bursts, and bytes that a burst carries in vain (ethos-u65,
// section 8.4).
#pragma once

#include <cstdint>

#include "npu/block.h"
#include "npu/operation.h"
#include "npu_model/cycles/operation_cost.h"

namespace talpa::npu_model {

enum class Direction : std::uint8_t { Read, Write };

/// Bytes in a row that one access of a block finds in memory; at least 1.
[[nodiscard]] std::uint32_t run_bytes(const npu::FeatureMap& fm, const npu::BlockShape& block, Direction direction,
                                      std::uint32_t cores);

/// Bytes on the bus for `bytes` useful ones that lie in runs of `run`: a run shorter than a burst costs a whole burst.
[[nodiscard]] std::uint64_t bus_bytes(std::uint64_t bytes, std::uint32_t run, const MemoryTiming& memory);

/// Adds a transfer to an operation's traffic and returns its bytes on the bus.
std::uint64_t add_transfer(OperationCost& cost, MemoryArea area, Direction direction, std::uint64_t bytes,
                           std::uint32_t run, const SystemConfig& config);

/// Channels, and elements, of a feature map as stored: bricks hold 16 channels.
[[nodiscard]] std::uint64_t stored_depth(const npu::FeatureMap& fm);
[[nodiscard]] std::uint64_t stored_elements(const npu::FeatureMap& fm);

/// What an operation's inputs and output move; what its weights and scales do; a DMA's copy, with the cycles it takes.
void feature_map_traffic(OperationCost& cost, const npu::Operation& op, const SystemConfig& config);
void constant_traffic(OperationCost& cost, const npu::Operation& op, const SystemConfig& config);
void copy_operation(OperationCost& cost, const npu::Operation& op, const SystemConfig& config);

}  // namespace talpa::npu_model
