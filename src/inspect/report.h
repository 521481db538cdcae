// What a program is: the facts behind `talpa inspect`, as data. Three views show them: text, JSON and HTML. A fault in
// one part of a file does not hide the rest: it is recorded as that part's `problem`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/host/error.h"
#include "inspect/debug_map.h"
#include "inspect/network.h"
#include "pte/delegate_blob.h"
#include "pte/file.h"
#include "runtime/host/session.h"
#include "runtime/memory.h"

namespace talpa::inspect {

struct Options {
    runtime::OperatorTable operators;  ///< those that are built in: without them a method's memory is not known
    std::vector<std::filesystem::path> data_files;  ///< .ptd
    std::string system;       ///< cycle model: "High_End" …; empty: as the program was compiled for
    std::string memory_mode;  ///< likewise
    /// The machine to estimate for, given NPU, system and memory mode as the program names them; not set: the published
    /// configurations. Its error is the delegate's problem.
    std::function<host::Result<npu_model::SystemConfig>(const std::string& npu, const std::string& system,
                                                        const std::string& memory_mode)>
        machine{};
    const DebugMap* debug_map = nullptr;  ///< names of nodes for the operations of the main method
};

/// Text pairs, in file order: compile specs.
using Specs = std::vector<std::pair<std::string, std::string>>;

/// A block of a delegate's payload.
struct Block {
    std::string name;
    std::uint64_t bytes = 0;   ///< in the payload
    std::string external_key;  ///< not empty: the data is named data elsewhere
};

struct DelegateReport {
    std::uint32_t index = 0;
    std::string backend;
    std::string location;  ///< "inline 0", "segment 1"
    std::uint64_t payload_bytes = 0;
    Specs specs;
    std::string target, memory_mode, system;  ///< out of the specs; empty where they do not say
    std::vector<Block> blocks;
    std::uint32_t config_word = 0, id_word = 0;
    std::string npu;  ///< "ethos-u65-256"
    std::uint64_t stream_bytes = 0, constant_bytes = 0, scratch_bytes = 0, fast_scratch_bytes = 0;
    bool fast_is_scratch = false;
    std::vector<pte::IoRecord> inputs, outputs;
    npu_model::SystemConfig config;  ///< that the estimate is for
    std::optional<Network> network;
    std::vector<std::string> nodes;  ///< by operation of the network: of the model; empty without a debug map
    std::string problem;             ///< why there is no network
};

struct InstructionReport {
    std::uint32_t chain = 0, index = 0;
    std::string kind;      ///< "KernelCall" …
    std::string op;        ///< operator or backend
    std::string text;      ///< readable, one line
    int delegate = kNone;  ///< of a DelegateCall
    bool built_in = true;  ///< a KernelCall: its operator is in the given table
};

struct MethodReport {
    std::string name;
    bool constant = false;  ///< only returns a constant
    std::string constant_value;
    std::vector<runtime::host::PortInfo> inputs, outputs;
    std::uint32_t value_count = 0;
    std::vector<std::int64_t> arenas;  ///< as the file has them; entry 0 is reserved
    std::vector<InstructionReport> plan;
    std::optional<runtime::MemoryNeed> memory;
    std::string problem;  ///< why the memory is not known
    std::vector<DelegateReport> delegates;
};

struct Report {
    std::string name;
    std::uint64_t bytes = 0;
    std::string identifier;  ///< "ET12"
    std::uint32_t version = 0;
    pte::FileFrame frame;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> segments;  ///< offset from the segment base, size
    std::uint32_t constants = 0;                                    ///< without the placeholder 0
    std::vector<std::pair<std::string, std::uint64_t>> named_data;  ///< key, bytes
    std::vector<MethodReport> methods;

    /// The method that summaries are about: "forward", else the first that runs something, else the first.
    [[nodiscard]] const MethodReport& main_method() const;
};

/// Errors (with the path): what keeps the file from being opened as a program at all; a data file that cannot be read.
[[nodiscard]] host::Result<Report> inspect_file(const std::filesystem::path& path, const Options& options);
/// The same for bytes at a 16-aligned address.
[[nodiscard]] host::Result<Report> inspect_bytes(Bytes file, std::string name, const Options& options);

}  // namespace talpa::inspect
