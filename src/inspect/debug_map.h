// From an operation of the NPU back to the node of the model that it computes, as tables in Vela's debug database: an
// XML file of tables of comma-separated values. What it looks like was taken from databases that Vela 5.2 wrote; we
// write the tables source, optimised, cmdstream, queue and perf, and read the same, whoever wrote them.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/host/error.h"

namespace talpa::inspect {

struct DebugMap {
    /// An operator of the model (`source`) or what it became for the NPU (`optimised`).
    struct Operator {
        std::uint32_t id = 0;   ///< counts from 1
        std::uint32_t key = 0;  ///< source: its place in the model; optimised: id of its source, 0 for none
        std::string name;       ///< "Conv2D"
        std::uint32_t kernel_width = 1, kernel_height = 1;
        std::uint32_t width = 1, height = 1, depth = 1;  ///< of the result
    };
    /// A command in a stream.
    struct Command {
        std::uint32_t offset = 0;     ///< of its word, in bytes
        std::uint32_t stream = 1;     ///< the delegate, counted from 1
        std::uint32_t optimised = 0;  ///< ids
        std::uint32_t scheduled = 0;
    };
    /// What an operation of the schedule costs, all its stripes together.
    struct Performance {
        std::uint32_t scheduled = 0, source = 0, optimised = 0;
        std::string kind, name;  ///< "Conv2D", the node's name in the model
        std::uint64_t staging_bytes = 0, cycles = 0, npu_cycles = 0, macs = 0, sram_cycles = 0, dram_cycles = 0;
    };

    std::string model;
    std::vector<Operator> source, optimised;
    std::vector<std::uint32_t> streams;
    std::vector<Command> queue;
    std::vector<Performance> performance;

    /// For commands of the delegate `index`, by their offsets: the node's name in the model, or the operator's kind and
    /// number where the names are not in the file; "" where nothing is known. A command that is not listed belongs to
    /// the next one that is: of several for one operation Vela lists the last, and copies come before what they serve.
    [[nodiscard]] std::vector<std::string> nodes_of(std::uint32_t index, std::span<const std::uint32_t> offsets) const;
};

[[nodiscard]] std::string debug_map_xml(const DebugMap& map);
/// Errors name table, line and column. Tables and columns that are not known are passed over.
[[nodiscard]] host::Result<DebugMap> read_debug_map(std::string_view xml, const std::string& name);

}  // namespace talpa::inspect
