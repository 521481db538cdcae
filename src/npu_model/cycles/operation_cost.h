// The cycle estimate of one operation of a command stream, from its registers alone (ethos-u65, section 8). Rules and
// what each rests on: docs/cycle-model.md. An estimate of the published model's kind, not a measurement of silicon.
#pragma once

#include <array>
#include <cstdint>

#include "npu/operation.h"
#include "npu_model/cycles/system_config.h"

namespace talpa::npu_model {

/// What an operation's time is spent on.
enum class Bound : std::uint8_t {
    None,     ///< costs nothing: a wait, STOP
    Mac,      ///< the multipliers
    Weights,  ///< the weight decoder: fewer than 32 positions a block (section 8.2)
    Output,   ///< the output unit
    Command,  ///< fetching and storing a block: latency that small blocks cannot hide
    Sram,     ///< SRAM bandwidth
    Dram,     ///< DRAM bandwidth
    Dma,      ///< a copy
};
inline constexpr std::size_t kBounds = 8;
/// "mac", "weights", …
[[nodiscard]] const char* bound_name(Bound bound);

/// Bytes moved in one memory. `useful` counts what is asked for; `bus` counts whole bursts, which is what costs time.
struct Traffic {
    std::uint64_t read_bytes = 0, write_bytes = 0;          ///< useful
    std::uint64_t bus_read_bytes = 0, bus_write_bytes = 0;  ///< burst-rounded
    std::uint64_t bursts = 0;

    [[nodiscard]] std::uint64_t bytes() const { return read_bytes + write_bytes; }
    [[nodiscard]] std::uint64_t bus_bytes() const { return bus_read_bytes + bus_write_bytes; }
    Traffic& operator+=(const Traffic& other);
};

struct OperationCost {
    std::uint64_t macs = 0;            ///< multiply-accumulates that the result needs
    std::uint64_t mac_cycles = 0;      ///< the MAC unit alone, if weights were always there
    std::uint64_t weight_cycles = 0;   ///< the MAC unit fed by the weight decoder; at least mac_cycles
    std::uint64_t output_cycles = 0;   ///< the output unit alone
    std::uint64_t command_cycles = 0;  ///< floor set by block fetch and store
    std::uint64_t fill_cycles = 0;     ///< fetching the first block's input: nothing of this operation hides it
    std::uint64_t drain_cycles = 0;    ///< storing the last block's output, likewise
    std::uint64_t npu_cycles = 0;      ///< all of these together, overlapped block by block; fill and drain included
    std::array<std::uint64_t, kMemoryAreas> memory_cycles{};  ///< traffic over bandwidth
    std::array<Traffic, kMemoryAreas> traffic{};
    std::uint64_t blocks = 0;  ///< OFM blocks
    std::uint64_t cycles = 0;  ///< the largest of npu_cycles and memory_cycles; a DMA: its copy
    Bound bound = Bound::None;

    [[nodiscard]] const Traffic& in(MemoryArea area) const { return traffic[index(area)]; }
    /// Share of the MAC array's peak, 0..1.
    [[nodiscard]] double utilisation(const SystemConfig& config) const {
        return cycles == 0 ? 0.0
                           : static_cast<double>(macs) / (static_cast<double>(cycles) * config.npu.hardware->macs);
    }
};

/// The cost of an operation as if it ran alone. Any decoded operation is accepted; waits and STOP cost nothing.
[[nodiscard]] OperationCost estimate(const npu::Operation& op, const SystemConfig& config = default_system_config());

/// Sets `cycles` and `bound` from the parts, after one of them was changed.
void settle(OperationCost& cost);

/// A pool of one element that exchanges rows and columns on the way: compilers transpose by such copies. It computes
/// nothing.
[[nodiscard]] bool is_transposing_copy(const npu::Operation& op);

/// A count out of an estimate, cut to what a double counts exactly: nonsense in a stream must not end in undefined
/// conversions.
[[nodiscard]] constexpr std::uint64_t to_count(double value) {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 53;
    return value >= static_cast<double>(kMost) ? kMost : value > 0 ? static_cast<std::uint64_t>(value) : 0;
}

}  // namespace talpa::npu_model
