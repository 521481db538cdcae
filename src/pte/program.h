// A .pte program, read in place: methods, values, instructions, operators, delegates, segments, constants and named
// data (a .ptd data file: pte/data_file.h). Opening verifies the whole structure (V1 to V7, V19), so the views below
// never fail; what needs an index checks it and says so. Whether a method makes sense (V8 to V18, V20, V21) is checked
// where it is loaded, by the runtime. The file's bytes belong to the caller and must outlive all views. (pte-format,
// sections 1 and 3)
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/core/byte_reader.h"
#include "base/core/error.h"
#include "pte/file.h"
#include "pte/flatbuffer.h"
#include "pte/schema.h"

namespace talpa::pte {

/// A Tensor value. Sizes and order are as the file has them, unchecked.
class TensorView {
  public:
    explicit TensorView(Table t) : table_(t) {}

    [[nodiscard]] std::int8_t scalar_type() const { return table_.scalar<std::int8_t>(slot::tensor::scalar_type); }
    [[nodiscard]] std::int32_t storage_offset() const {
        return table_.scalar<std::int32_t>(slot::tensor::storage_offset);
    }
    [[nodiscard]] Vector<std::int32_t> sizes() const { return table_.vector<std::int32_t>(slot::tensor::sizes); }
    [[nodiscard]] Vector<std::uint8_t> dim_order() const {
        return table_.vector<std::uint8_t>(slot::tensor::dim_order);
    }
    [[nodiscard]] ShapeDynamism dynamism() const {
        return static_cast<ShapeDynamism>(table_.scalar<std::int8_t>(slot::tensor::shape_dynamism));
    }
    /// Index of the constant or initial value; 0: none.
    [[nodiscard]] std::uint32_t data_index() const {
        return table_.scalar<std::uint32_t>(slot::tensor::data_buffer_idx);
    }

    [[nodiscard]] bool is_planned() const { return table_.has(slot::tensor::allocation_info); }
    [[nodiscard]] std::uint32_t memory_id() const {
        return allocation().scalar<std::uint32_t>(slot::allocation::memory_id);
    }
    [[nodiscard]] std::uint64_t memory_offset() const {
        return std::uint64_t{allocation().scalar<std::uint32_t>(slot::allocation::memory_offset_high)} << 32 |
               allocation().scalar<std::uint32_t>(slot::allocation::memory_offset_low);
    }

    [[nodiscard]] bool is_external() const { return extra().scalar<std::int8_t>(slot::extra::location) == 1; }
    [[nodiscard]] std::int8_t location() const { return extra().scalar<std::int8_t>(slot::extra::location); }
    [[nodiscard]] std::int8_t device_type() const { return extra().scalar<std::int8_t>(slot::extra::device_type); }
    [[nodiscard]] std::string_view qualified_name() const { return extra().string(slot::extra::fully_qualified_name); }
    [[nodiscard]] Table table() const { return table_; }

  private:
    [[nodiscard]] Table allocation() const { return table_.table(slot::tensor::allocation_info); }
    [[nodiscard]] Table extra() const { return table_.table(slot::tensor::extra_tensor_info); }
    Table table_;
};

/// A slot of the value table.
class ValueView {
  public:
    explicit ValueView(Table evalue) : evalue_(evalue), value_(evalue.table(slot::evalue::val)) {}

    [[nodiscard]] ValueType type() const {
        return static_cast<ValueType>(evalue_.scalar<std::uint8_t>(slot::evalue::val_type));
    }
    // Each of these is meant for its type only.
    [[nodiscard]] std::int64_t as_int() const { return value_.scalar<std::int64_t>(0); }
    [[nodiscard]] bool as_bool() const { return value_.scalar<std::uint8_t>(0) != 0; }
    [[nodiscard]] double as_double() const { return value_.scalar<double>(0); }
    [[nodiscard]] std::string_view as_string() const { return value_.string(0); }
    [[nodiscard]] TensorView as_tensor() const { return TensorView(value_); }
    [[nodiscard]] Vector<std::int64_t> int_list() const { return value_.vector<std::int64_t>(0); }  ///< value indices
    [[nodiscard]] Vector<double> double_list() const { return value_.vector<double>(0); }
    [[nodiscard]] Vector<std::uint8_t> bool_list() const { return value_.vector<std::uint8_t>(0); }
    [[nodiscard]] Vector<std::int32_t> tensor_list() const {
        return value_.vector<std::int32_t>(0);
    }  ///< value indices; optional too
    [[nodiscard]] Table table() const { return value_; }

  private:
    Table evalue_;
    Table value_;
};

/// An instruction. `type` says which of the accessors below it means anything for.
class InstructionView {
  public:
    explicit InstructionView(Table instruction)
        : instruction_(instruction), args_(instruction.table(slot::instruction::instr_args)) {}

    [[nodiscard]] InstructionType type() const {
        return static_cast<InstructionType>(instruction_.scalar<std::uint8_t>(slot::instruction::instr_args_type));
    }
    [[nodiscard]] std::int32_t op_index() const {
        return args_.scalar<std::int32_t>(slot::kernel_call::op_index);
    }  // KernelCall
    [[nodiscard]] std::int32_t delegate_index() const {
        return args_.scalar<std::int32_t>(slot::delegate_call::delegate_index);
    }  // DelegateCall
    [[nodiscard]] Vector<std::int32_t> args() const {
        return args_.vector<std::int32_t>(slot::kernel_call::args);
    }  // both
    [[nodiscard]] std::int32_t move_from() const {
        return args_.scalar<std::int32_t>(slot::move_call::move_from);
    }  // MoveCall
    [[nodiscard]] std::int32_t move_to() const { return args_.scalar<std::int32_t>(slot::move_call::move_to); }
    [[nodiscard]] std::int32_t condition() const {
        return args_.scalar<std::int32_t>(slot::jump_false::cond_value_index);
    }  // JumpFalseCall
    [[nodiscard]] std::int32_t destination() const {
        return args_.scalar<std::int32_t>(slot::jump_false::destination_instruction);
    }
    [[nodiscard]] std::int32_t freed_value() const {
        return args_.scalar<std::int32_t>(slot::free_call::value_index);
    }  // FreeCall
    [[nodiscard]] Table table() const { return args_; }

  private:
    Table instruction_;
    Table args_;
};

struct OperatorView {
    std::string_view name, overload;
};

struct CompileSpecView {
    std::string_view key;
    Bytes value;
    [[nodiscard]] std::string_view text() const { return {reinterpret_cast<const char*>(value.data()), value.size()}; }
};

enum class DataLocation : std::int8_t { Inline = 0, Segment = 1 };

class DelegateView {
  public:
    explicit DelegateView(Table t) : table_(t) {}

    [[nodiscard]] std::string_view id() const { return table_.string(slot::delegate::id); }
    [[nodiscard]] DataLocation location() const {
        return static_cast<DataLocation>(reference().scalar<std::int8_t>(slot::data_reference::location));
    }
    [[nodiscard]] std::uint32_t index() const { return reference().scalar<std::uint32_t>(slot::data_reference::index); }
    [[nodiscard]] std::uint32_t compile_spec_count() const {
        return table_.tables(slot::delegate::compile_specs).size();
    }
    [[nodiscard]] CompileSpecView compile_spec(std::uint32_t i) const;
    /// The spec's value as text; empty when there is none.
    [[nodiscard]] std::string_view compile_spec(std::string_view key) const;

  private:
    [[nodiscard]] Table reference() const { return table_.table(slot::delegate::processed); }
    Table table_;
};

/// A method (ExecutionPlan). Indices given to its accessors must be below the counts.
class MethodView {
  public:
    explicit MethodView(Table plan) : plan_(plan) {}

    [[nodiscard]] std::string_view name() const { return plan_.string(slot::plan::name); }
    /// The pytree texts of inputs and outputs; may be empty.
    [[nodiscard]] std::string_view input_tree() const {
        return plan_.table(slot::plan::container_meta_type).string(slot::container::encoded_inp_str);
    }
    [[nodiscard]] std::string_view output_tree() const {
        return plan_.table(slot::plan::container_meta_type).string(slot::container::encoded_out_str);
    }
    [[nodiscard]] TableVector values() const { return plan_.tables(slot::plan::values); }
    [[nodiscard]] ValueView value(std::uint32_t i) const { return ValueView(values()[i]); }
    [[nodiscard]] Vector<std::int32_t> inputs() const { return plan_.vector<std::int32_t>(slot::plan::inputs); }
    [[nodiscard]] Vector<std::int32_t> outputs() const { return plan_.vector<std::int32_t>(slot::plan::outputs); }
    [[nodiscard]] std::uint32_t chain_count() const { return plan_.tables(slot::plan::chains).size(); }
    [[nodiscard]] TableVector instructions(std::uint32_t chain) const {
        return plan_.tables(slot::plan::chains)[chain].tables(slot::chain::instructions);
    }
    /// Source frames of an instruction, innermost first; empty when the file has none.
    [[nodiscard]] TableVector stack_trace(std::uint32_t chain, std::uint32_t instruction) const;
    [[nodiscard]] TableVector operators() const { return plan_.tables(slot::plan::operators); }
    [[nodiscard]] OperatorView op(std::uint32_t i) const {
        return {operators()[i].string(slot::op::name), operators()[i].string(slot::op::overload)};
    }
    [[nodiscard]] std::uint32_t delegate_count() const { return plan_.tables(slot::plan::delegates).size(); }
    [[nodiscard]] DelegateView delegate(std::uint32_t i) const {
        return DelegateView(plan_.tables(slot::plan::delegates)[i]);
    }
    /// Arena sizes; entry 0 is reserved, memory id m means entry m.
    [[nodiscard]] Vector<std::int64_t> arena_sizes() const {
        return plan_.vector<std::int64_t>(slot::plan::non_const_buffer_sizes);
    }
    [[nodiscard]] TableVector arena_devices() const { return plan_.tables(slot::plan::non_const_buffer_device); }
    [[nodiscard]] Table table() const { return plan_; }

  private:
    Table plan_;
};

struct SegmentView {
    std::uint64_t offset = 0, size = 0;
};

struct NamedDataView {
    std::string_view key;
    std::uint32_t segment_index = 0;
};

class Program {
  public:
    /// Verifies and opens. Errors: InvalidProgram (malformed), NotSupported (another generation or kind of file),
    /// InvalidArgument (not 16-aligned).
    [[nodiscard]] static Result<Program> open(Bytes file);

    [[nodiscard]] Bytes bytes() const { return file_; }
    [[nodiscard]] const FileFrame& frame() const { return frame_; }
    /// Schema version; known programs have 0, others deserve a warning.
    [[nodiscard]] std::uint32_t version() const { return root_.scalar<std::uint32_t>(slot::program::version); }
    [[nodiscard]] Table root() const { return root_; }

    [[nodiscard]] std::uint32_t method_count() const { return methods().size(); }
    [[nodiscard]] MethodView method(std::uint32_t i) const { return MethodView(methods()[i]); }
    /// NotFound names what is wanted and the first that there is; InvalidProgram when two have the name (V24).
    [[nodiscard]] Result<MethodView> find_method(std::string_view name) const;

    [[nodiscard]] std::uint32_t segment_count() const { return root_.tables(slot::program::segments).size(); }
    [[nodiscard]] SegmentView segment(std::uint32_t i) const;
    [[nodiscard]] Result<Bytes> segment_data(std::uint64_t index) const;

    /// Are constants in the old inline vector (0.3 and before)?
    [[nodiscard]] bool has_constant_buffer() const { return !root_.tables(slot::program::constant_buffer).empty(); }
    /// Number of constants, the placeholder 0 included.
    [[nodiscard]] std::uint32_t constant_count() const;
    /// `size` bytes of constant `index` >= 1 (V17).
    [[nodiscard]] Result<Bytes> constant(std::uint32_t index, std::uint64_t size) const;
    /// Initial value of a mutable buffer: entry 0 of mutable_data_segments, whatever the tensor says (as upstream
    /// does).
    [[nodiscard]] Result<Bytes> mutable_data(std::uint32_t index, std::uint64_t size) const;

    /// The payload of a delegate, inline or in a segment.
    [[nodiscard]] Result<Bytes> delegate_data(const DelegateView& delegate) const;

    [[nodiscard]] std::uint32_t named_data_count() const { return root_.tables(slot::program::named_data).size(); }
    [[nodiscard]] NamedDataView named_data(std::uint32_t i) const;
    /// The data of a key; nothing when the program has no such key; InvalidProgram when two have it (V24).
    [[nodiscard]] Result<std::optional<Bytes>> find_named_data(std::string_view key) const;

  private:
    [[nodiscard]] TableVector methods() const { return root_.tables(slot::program::execution_plan); }
    [[nodiscard]] Result<Bytes> subsegment(Table offsets, std::uint32_t index, std::uint64_t size,
                                           const char* what) const;

    Bytes file_;
    FileFrame frame_;
    Table root_;
};

}  // namespace talpa::pte
