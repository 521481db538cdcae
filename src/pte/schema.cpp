#include "pte/schema.h"

#include "base/core/error.h"

namespace talpa::pte {
namespace {

using enum SlotType;

// clang-format off
constexpr SlotRule kProgram[] = {{0, Scalar4}, {1, Tables, TableKind::ExecutionPlan}, {2, Tables, TableKind::Buffer},
    {3, Tables, TableKind::BackendDelegateInlineData}, {4, Tables, TableKind::DataSegment}, {5, Table, TableKind::SubsegmentOffsets},
    {6, Tables, TableKind::SubsegmentOffsets}, {7, Tables, TableKind::NamedData}};
constexpr SlotRule kPlan[] = {{0, String}, {1, Table, TableKind::ContainerMetadata}, {2, Tables, TableKind::EValue}, {3, Vector4},
    {4, Vector4}, {5, Tables, TableKind::Chain}, {6, Tables, TableKind::Operator}, {7, Tables, TableKind::BackendDelegate},
    {8, Vector8}, {9, Tables, TableKind::NonConstBufferDevice}};
constexpr SlotRule kTwoStrings[] = {{0, String}, {1, String}};
constexpr SlotRule kEValue[] = {{0, KernelTypes}};
constexpr SlotRule kOne1[] = {{0, Scalar1}};
constexpr SlotRule kOne4[] = {{0, Scalar4}};
constexpr SlotRule kOne8[] = {{0, Scalar8}};
constexpr SlotRule kTwo4[] = {{0, Scalar4}, {1, Scalar4}};
constexpr SlotRule kTwo8[] = {{0, Scalar8}, {1, Scalar8}};
constexpr SlotRule kString[] = {{0, String}};
constexpr SlotRule kVector1[] = {{0, Vector1}};
constexpr SlotRule kVector4[] = {{0, Vector4}};
constexpr SlotRule kVector8[] = {{0, Vector8}};
constexpr SlotRule kTensor[] = {{0, Scalar1}, {1, Scalar4}, {2, Vector4}, {3, Vector1}, {4, Scalar1}, {5, Scalar4},
    {6, Table, TableKind::AllocationDetails}, {7, Scalar1}, {8, Scalar1}, {9, Table, TableKind::ExtraTensorInfo}};
constexpr SlotRule kAllocation[] = {{0, Scalar4}, {1, Scalar4}, {2, Scalar4}};
constexpr SlotRule kExtra[] = {{0, Scalar8}, {1, String}, {2, Scalar1}, {3, Scalar1}, {4, Scalar1}};
constexpr SlotRule kChain[] = {{0, Vector4}, {1, Vector4}, {2, Tables, TableKind::Instruction}, {3, Tables, TableKind::FrameList}};
constexpr SlotRule kInstruction[] = {{0, InstructionArguments}};
constexpr SlotRule kCall[] = {{0, Scalar4}, {1, Vector4}};
constexpr SlotRule kFrameList[] = {{0, Tables, TableKind::Frame}};
constexpr SlotRule kFrame[] = {{0, String}, {1, Scalar4}, {2, String}, {3, String}};
constexpr SlotRule kDelegate[] = {{0, String}, {1, Table, TableKind::BackendDelegateDataReference}, {2, Tables, TableKind::CompileSpec}};
constexpr SlotRule kDataReference[] = {{0, Scalar1}, {1, Scalar4}};
constexpr SlotRule kCompileSpec[] = {{0, String}, {1, Vector1}};
constexpr SlotRule kSubsegment[] = {{0, Scalar4}, {1, Vector8}};
constexpr SlotRule kNamed[] = {{0, String}, {1, Scalar4}};
constexpr SlotRule kBufferDevice[] = {{0, Scalar4}, {1, Scalar1}, {2, Scalar1}};
constexpr SlotRule kFlatTensor[] = {{0, Scalar4}, {1, Tables, TableKind::DataSegment}, {2, Tables, TableKind::FlatNamedData}};
constexpr SlotRule kFlatNamed[] = {{0, String}, {1, Scalar4}, {2, Table, TableKind::TensorLayout}};
constexpr SlotRule kLayout[] = {{0, Scalar1}, {1, Vector4}, {2, Vector1}};

#define S(name) TALPA_SENTENCE(name)
// In the order of TableKind.
constexpr TableRule kTables[] = {
    {S("Program"), kProgram}, {S("ExecutionPlan"), kPlan}, {S("ContainerMetadata"), kTwoStrings}, {S("EValue"), kEValue}, {S("Null"), {}},
    {S("Int"), kOne8}, {S("Bool"), kOne1}, {S("Double"), kOne8}, {S("Tensor"), kTensor}, {S("String"), kString}, {S("IntList"), kVector8},
    {S("DoubleList"), kVector8}, {S("BoolList"), kVector1}, {S("TensorList"), kVector4}, {S("OptionalTensorList"), kVector4},
    {S("AllocationDetails"), kAllocation}, {S("ExtraTensorInfo"), kExtra}, {S("Chain"), kChain}, {S("Instruction"), kInstruction},
    {S("KernelCall"), kCall}, {S("DelegateCall"), kCall}, {S("MoveCall"), kTwo4}, {S("JumpFalseCall"), kTwo4}, {S("FreeCall"), kOne4},
    {S("FrameList"), kFrameList}, {S("Frame"), kFrame}, {S("Operator"), kTwoStrings}, {S("BackendDelegate"), kDelegate},
    {S("BackendDelegateDataReference"), kDataReference}, {S("CompileSpec"), kCompileSpec}, {S("BackendDelegateInlineData"), kVector1},
    {S("Buffer"), kVector1}, {S("DataSegment"), kTwo8}, {S("SubsegmentOffsets"), kSubsegment}, {S("NamedData"), kNamed},
    {S("NonConstBufferDevice"), kBufferDevice}, {S("FlatTensor"), kFlatTensor}, {S("NamedData"), kFlatNamed}, {S("TensorLayout"), kLayout},
};
#undef S
static_assert(std::size(kTables) == static_cast<std::size_t>(TableKind::TensorLayout) + 1);

constexpr TableKind kKernelTypes[] = {TableKind::Null, TableKind::Int, TableKind::Bool, TableKind::Double, TableKind::Tensor,
    TableKind::String, TableKind::IntList, TableKind::DoubleList, TableKind::BoolList, TableKind::TensorList, TableKind::OptionalTensorList};
constexpr TableKind kInstructionTypes[] = {TableKind::KernelCall, TableKind::DelegateCall, TableKind::MoveCall,
    TableKind::JumpFalseCall, TableKind::FreeCall};
// clang-format on

}  // namespace

const TableRule& table_rule(TableKind kind) {
    return kTables[static_cast<std::size_t>(kind)];
}

const TableKind* union_member(SlotType union_type, std::uint8_t number) {
    const std::span<const TableKind> members = union_type == KernelTypes
                                                   ? std::span<const TableKind>(kKernelTypes)
                                                   : std::span<const TableKind>(kInstructionTypes);
    return number == 0 || number > members.size() ? nullptr : &members[number - 1U];
}

}  // namespace talpa::pte
