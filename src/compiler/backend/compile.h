// From a quantized graph to a program: NPU parts lowered and scheduled, CPU operators around them, everything in one
// .pte. What the command line and the tests call.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/host/error.h"
#include "compiler/graph/graph.h"
#include "compiler/lower/network.h"
#include "compiler/schedule/target.h"

namespace talpa::compiler {

enum class IoType : std::uint8_t {
    AsModel,    ///< what the graph's inputs and outputs are
    Float,      ///< float32, quantized and dequantized by CPU operators
    Quantized,  ///< the integers that the NPU works with; their scales go along as constant methods
};

/// A node that neither the NPU nor a CPU operator can run.
struct Unsupported {
    Source source;
    std::string what;
};

struct CompileOptions {
    Target target;
    IoType io = IoType::AsModel;
    std::string method = "forward";
    /// Constant methods beside it: labels, preprocessing. Names and texts.
    std::vector<std::pair<std::string, std::string>> metadata;
    /// The same of lists of numbers.
    std::vector<std::pair<std::string, std::vector<double>>> number_metadata;
    /// "lower", "schedule", "emit": that stage's text goes into the report.
    std::string dump_after;
    std::vector<Unsupported>* unsupported = nullptr;  ///< takes what the error NotSupported lists
};

/// An operation of the command stream and the node of the graph that it computes.
struct OperationOrigin {
    std::uint32_t delegate = 0;
    std::uint32_t offset_bytes = 0;  ///< of the command word in the stream
    std::uint32_t step = 0;          ///< of the delegate: stripes of one step share it
    std::uint32_t node = 0;
    std::string operation;  ///< with its maps
    /// What a kernel writes: element (y, x, c) of its OFM is element `first` + y*stride_y + x*stride_x + c of the
    /// delegate's tensor. A DMA that copies a tensor has `copied_from` instead; one that brings constants has neither.
    struct Written {
        std::uint32_t tensor = 0;
        std::int64_t first = 0, stride_y = 0, stride_x = 0;
    };
    std::optional<Written> written{};
    std::optional<std::pair<std::uint32_t, std::uint32_t>> copied{};  ///< from a tensor to another
};

/// How a delegate's tensors are values of the graph.
struct DelegateMap {
    std::vector<std::uint64_t> tensor_elements;  ///< by tensor
    std::vector<ValuePlace> values;
};

struct DelegateReport {
    std::uint64_t cycles = 0, macs = 0;
    std::uint64_t command_bytes = 0, constant_bytes = 0, weight_bytes = 0, plain_weight_bytes = 0;
    std::uint64_t arena_bytes = 0, fast_bytes = 0;
    std::uint32_t steps = 0, operations = 0;
    std::string peak_step;
};

/// A node that did not go to the NPU, and why.
struct CpuNode {
    std::uint32_t node = 0;
    std::string reason;
};

struct CompileReport {
    std::vector<DelegateReport> delegates;
    std::vector<CpuNode> cpu_nodes;  ///< conversions at the edges are not listed
    std::uint32_t npu_nodes = 0;
    std::vector<OperationOrigin> origins;
    std::vector<DelegateMap> maps;                                 ///< by delegate
    std::vector<std::pair<std::int32_t, ValueId>> program_values;  ///< value of the method, value of the graph
    std::string dump;
};

struct Compiled {
    std::vector<std::uint8_t> pte;  ///< 16-aligned in memory
    CompileReport report;
};

/// What can be done about nodes that are not supported.
extern const char* const kUnsupportedHint;

/// Errors: NotSupported with every node that neither the NPU nor a CPU operator can run, one a line; OutOfResources
/// when the target's SRAM does not suffice. The same graph and options give the same bytes.
[[nodiscard]] host::Result<Compiled> compile(const Graph& graph, const CompileOptions& options = {});

}  // namespace talpa::compiler
