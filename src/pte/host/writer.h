// Writes .pte programs and .ptd data files from a plain description, by the checklist of pte-format, section 15. What
// the description says is written as it stands: that a program makes sense is the reader's judgement, and tests write
// programs that do not. Old forms (inline constants, short headers) are written too, for the reader must know them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "pte/program.h"
#include "pte/schema.h"

namespace talpa::pte::host {

struct PlacementSpec {
    std::uint32_t memory_id = 1;
    std::uint64_t offset = 0;
};

struct ExtraTensorSpec {
    std::string name;
    std::int8_t location = 0;  ///< 1: in a data file
    std::int8_t device_type = 0;
};

struct TensorSpec {
    std::int8_t scalar_type = 6;
    std::vector<std::int32_t> sizes;
    std::optional<std::vector<std::uint8_t>> dim_order;  ///< contiguous when not given
    std::uint32_t data_index = 0;
    std::optional<PlacementSpec> placement;
    ShapeDynamism dynamism = ShapeDynamism::Static;
    std::int32_t storage_offset = 0;
    std::optional<ExtraTensorSpec> extra;
};

struct NullSpec {};
struct IntListSpec {
    std::vector<std::int64_t> items;
};
struct DoubleListSpec {
    std::vector<double> items;
};
struct BoolListSpec {
    std::vector<std::uint8_t> items;
};
struct TensorListSpec {
    std::vector<std::int32_t> items;
};
struct OptionalTensorListSpec {
    std::vector<std::int32_t> items;
};
using ValueSpec = std::variant<NullSpec, std::int64_t, bool, double, TensorSpec, std::string, IntListSpec,
                               DoubleListSpec, BoolListSpec, TensorListSpec, OptionalTensorListSpec>;

struct KernelCallSpec {
    std::int32_t op = 0;
    std::vector<std::int32_t> args;
};
struct DelegateCallSpec {
    std::int32_t delegate = 0;
    std::vector<std::int32_t> args;
};
struct MoveCallSpec {
    std::int32_t from = 0, to = 0;
};
struct JumpFalseCallSpec {
    std::int32_t condition = 0, destination = 0;
};
struct FreeCallSpec {
    std::int32_t value = 0;
};
using InstructionSpec =
    std::variant<std::monostate, KernelCallSpec, DelegateCallSpec, MoveCallSpec, JumpFalseCallSpec, FreeCallSpec>;

struct DelegateSpec {
    std::string id = "EthosUBackend";
    std::vector<std::uint8_t> payload;
    DataLocation location = DataLocation::Inline;  ///< equal payloads in one place are stored once
    std::vector<std::pair<std::string, std::string>> compile_specs;
};

struct MethodSpec {
    std::string name = "forward";
    std::string input_tree, output_tree;
    std::vector<ValueSpec> values;
    std::vector<std::int32_t> inputs, outputs;
    std::vector<std::vector<InstructionSpec>> chains{{}};
    std::vector<std::pair<std::string, std::string>> operators;  ///< name, overload
    std::vector<DelegateSpec> delegates;
    std::vector<std::int64_t> arena_sizes{0};     ///< entry 0 is reserved
    std::vector<std::int8_t> arena_device_types;  ///< of arenas 1 …; empty: not written
    std::vector<unsigned> omitted_slots;          ///< of the ExecutionPlan, for tests
};

struct NamedDataSpec {
    std::string key;
    std::vector<std::uint8_t> data;
};

struct ProgramSpec {
    enum class Constants : std::uint8_t {
        Segment,       ///< constant_segment, as since 0.4
        InlineBuffer,  ///< constant_buffer, as up to 0.3
    };

    std::vector<MethodSpec> methods;
    std::vector<std::vector<std::uint8_t>> constants;       ///< [0] is constant 1
    std::vector<std::vector<std::uint8_t>> initial_values;  ///< of mutable buffers, likewise
    std::vector<NamedDataSpec> named_data;
    Constants constant_form = Constants::Segment;
    std::uint32_t header_length = 32;  ///< 24: as before 1.0
    std::size_t segment_alignment = 128;
    std::uint32_t version = 0;
    std::vector<unsigned> omitted_slots;  ///< of the Program, for tests
};

/// The bytes of the file. The result is 16-aligned in memory.
[[nodiscard]] std::vector<std::uint8_t> write_program(const ProgramSpec& program);

/// A constant method: no inputs, no instructions, one output (section 5.5).
[[nodiscard]] MethodSpec constant_method_spec(std::string name, ValueSpec value);

struct DataEntrySpec {
    std::string key;
    std::vector<std::uint8_t> data;
    struct Layout {
        std::int8_t scalar_type = 6;
        std::vector<std::int32_t> sizes;
        std::vector<std::uint8_t> dim_order;
    };
    std::optional<Layout> layout;
};

/// A data file, today's form.
[[nodiscard]] std::vector<std::uint8_t> write_data_file(const std::vector<DataEntrySpec>& entries);

}  // namespace talpa::pte::host
