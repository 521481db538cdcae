// The tables of the .pte and .ptd schemas: slot numbers, and the shape of each slot for the verifier. One source for
// reader, writer and tests. (pte-format, sections 1.6 and 3)
#pragma once

#include <cstdint>
#include <span>

namespace talpa::pte {

enum class TableKind : std::uint8_t {
    Program,
    ExecutionPlan,
    ContainerMetadata,
    EValue,
    Null,
    Int,
    Bool,
    Double,
    Tensor,
    String,
    IntList,
    DoubleList,
    BoolList,
    TensorList,
    OptionalTensorList,
    AllocationDetails,
    ExtraTensorInfo,
    Chain,
    Instruction,
    KernelCall,
    DelegateCall,
    MoveCall,
    JumpFalseCall,
    FreeCall,
    FrameList,
    Frame,
    Operator,
    BackendDelegate,
    BackendDelegateDataReference,
    CompileSpec,
    BackendDelegateInlineData,
    Buffer,
    DataSegment,
    SubsegmentOffsets,
    NamedData,
    NonConstBufferDevice,
    FlatTensor,
    FlatNamedData,
    TensorLayout,
};

/// What a slot holds. Scalars are told apart by their width only.
enum class SlotType : std::uint8_t {
    Scalar1,
    Scalar4,
    Scalar8,
    String,
    Table,
    Vector1,
    Vector4,
    Vector8,
    Tables,
    KernelTypes,
    InstructionArguments,  ///< unions: this slot is the type byte, the next one the table
};

struct SlotRule {
    std::uint8_t slot;
    SlotType type;
    TableKind target = TableKind::Null;  ///< of Table and Tables
};

struct TableRule {
    const char* name;
    std::span<const SlotRule> slots;
};

[[nodiscard]] const TableRule& table_rule(TableKind kind);

/// The table that a union's type byte stands for; null for 0 and for numbers that the schema does not know.
[[nodiscard]] const TableKind* union_member(SlotType union_type, std::uint8_t number);

/// EValue.val_type: numbers of the union KernelTypes.
enum class ValueType : std::uint8_t {
    None = 0,
    Null = 1,
    Int = 2,
    Bool = 3,
    Double = 4,
    Tensor = 5,
    String = 6,
    IntList = 7,
    DoubleList = 8,
    BoolList = 9,
    TensorList = 10,
    OptionalTensorList = 11,
};

/// Instruction.instr_args_type: numbers of the union InstructionArguments.
enum class InstructionType : std::uint8_t {
    None = 0,
    KernelCall = 1,
    DelegateCall = 2,
    MoveCall = 3,
    JumpFalseCall = 4,
    FreeCall = 5
};

enum class ShapeDynamism : std::int8_t { Static = 0, DynamicBound = 1, DynamicUnbound = 2 };

/// Slot numbers, by table.
namespace slot {
namespace program {
enum : unsigned {
    version,
    execution_plan,
    constant_buffer,
    backend_delegate_data,
    segments,
    constant_segment,
    mutable_data_segments,
    named_data
};
}
namespace plan {
enum : unsigned {
    name,
    container_meta_type,
    values,
    inputs,
    outputs,
    chains,
    operators,
    delegates,
    non_const_buffer_sizes,
    non_const_buffer_device
};
}
namespace container {
enum : unsigned { encoded_inp_str, encoded_out_str };
}
namespace evalue {
enum : unsigned { val_type, val };
}
namespace tensor {
enum : unsigned {
    scalar_type,
    storage_offset,
    sizes,
    dim_order,
    requires_grad,
    data_buffer_idx,
    allocation_info,
    layout,
    shape_dynamism,
    extra_tensor_info
};
}
namespace allocation {
enum : unsigned { memory_id, memory_offset_low, memory_offset_high };
}
namespace extra {
enum : unsigned { mutable_data_segments_idx, fully_qualified_name, location, device_type, device_index };
}
namespace chain {
enum : unsigned { inputs, outputs, instructions, stacktrace };
}
namespace instruction {
enum : unsigned { instr_args_type, instr_args };
}
namespace kernel_call {
enum : unsigned { op_index, args };
}
namespace delegate_call {
enum : unsigned { delegate_index, args };
}
namespace move_call {
enum : unsigned { move_from, move_to };
}
namespace jump_false {
enum : unsigned { cond_value_index, destination_instruction };
}
namespace free_call {
enum : unsigned { value_index };
}
namespace frame {
enum : unsigned { filename, lineno, name, context };
}
namespace op {
enum : unsigned { name, overload };
}
namespace delegate {
enum : unsigned { id, processed, compile_specs };
}
namespace data_reference {
enum : unsigned { location, index };
}
namespace compile_spec {
enum : unsigned { key, value };
}
namespace segment {
enum : unsigned { offset, size };
}
namespace subsegment {
enum : unsigned { segment_index, offsets };
}
namespace named {
enum : unsigned { key, segment_index, tensor_layout };
}
namespace buffer_device {
enum : unsigned { buffer_idx, device_type, device_index };
}
namespace flat_tensor {
enum : unsigned { version, segments, named_data };
}
namespace layout {
enum : unsigned { scalar_type, sizes, dim_order };
}
}  // namespace slot

}  // namespace talpa::pte
