// What a command stream is as a network: operations gathered into layers, the tensors between them with their
// lifetimes, and who feeds whom. The stream itself knows none of this; it is found by following the bytes: a kernel
// reads what an earlier one wrote, a copy brings the weights of the kernel that reads them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "npu/operation.h"
#include "npu_model/cycles/network_cost.h"

namespace talpa::inspect {

inline constexpr int kNone = -1;

/// A stretch of memory with one purpose for a time. Regions 0 to 7; kShram for tables in the shared RAM.
struct TensorRange {
    enum class Kind : std::uint8_t { Input, FeatureMap, Weights, Table, Copy } kind = Kind::FeatureMap;
    std::uint8_t region = 0;
    std::int64_t begin = 0, end = 0;  ///< bytes of the region
    std::size_t first = 0, last = 0;  ///< operations: first write (an input: 0) and last use
    std::uint64_t from_cycle = 0, to_cycle = 0;
    int layer = kNone;                  ///< that writes it; of weights and tables: that reads it
    int input = kNone, output = kNone;  ///< index, where it is one of the network's
};
inline constexpr std::uint8_t kShram = 8;
[[nodiscard]] const char* range_kind_name(TensorRange::Kind kind);

/// Operations that compute one tensor: depth slices, stripes of a cascade, copies of a transpose, and the DMAs that
/// serve them.
struct Layer {
    std::string name;                     ///< "Conv 3x3 s2", "Depthwise 5x5", "Transpose" …
    std::vector<std::size_t> operations;  ///< in stream order, DMAs included
    std::size_t kernels = 0;
    std::uint32_t ifm_height = 0, ifm_width = 0, ifm_depth = 0;
    std::uint32_t ofm_height = 0, ofm_width = 0, ofm_depth = 0;
    std::uint32_t padding_top = 0;
    std::uint64_t start = 0, end = 0;  ///< cycles; layers of a cascade overlap
    std::uint64_t cycles = 0;          ///< spent in its kernels, waiting included
    std::uint64_t macs = 0;
    std::uint64_t weight_bytes = 0;                   ///< encoded, each stretch once however often it is read
    std::uint64_t raw_weight_bytes = 0;               ///< before encoding, likewise
    npu_model::Bound bound = npu_model::Bound::None;  ///< of most of its cycles
    std::array<npu_model::Traffic, npu_model::kMemoryAreas> traffic{};
    std::vector<int> inputs;  ///< layers that it reads from; -2 - i for input i of the network
};

/// Where the network's own inputs and outputs are.
struct Border {
    std::uint8_t region = 1;
    std::uint64_t offset = 0, size = 0;
};

struct Network {
    std::vector<npu::Operation> operations;
    npu_model::NetworkCost cost;
    std::vector<int> layer_of;  ///< by operation; kNone for waits and STOP
    std::vector<Layer> layers;
    std::vector<TensorRange> ranges;
    std::vector<std::vector<int>> outputs;  ///< by output of the network: layers that write it
};

/// `fast_is_scratch`: regions 1 and 2 are the same memory.
[[nodiscard]] Network analyse(std::vector<npu::Operation> operations, npu_model::NetworkCost cost,
                              std::span<const Border> inputs, std::span<const Border> outputs, bool fast_is_scratch);

/// "Conv 3x3 s2", "Fully connected", "Average pool 7x7", "Transpose", "Table": what one operation is called.
[[nodiscard]] std::string operation_title(const npu::Operation& op);

/// Bytes of a kernel's weights before encoding, padding not counted.
[[nodiscard]] std::uint64_t raw_weight_bytes(const npu::Operation& op);

/// Bytes that a DMA brings from one side to the other.
[[nodiscard]] std::uint64_t copied_bytes(const npu_model::OperationCost& cost);

}  // namespace talpa::inspect
