#include "pte/schema.h"

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

// In the order of TableKind.
constexpr TableRule kTables[] = {
    {"Program", kProgram}, {"ExecutionPlan", kPlan}, {"ContainerMetadata", kTwoStrings}, {"EValue", kEValue}, {"Null", {}},
    {"Int", kOne8}, {"Bool", kOne1}, {"Double", kOne8}, {"Tensor", kTensor}, {"String", kString}, {"IntList", kVector8},
    {"DoubleList", kVector8}, {"BoolList", kVector1}, {"TensorList", kVector4}, {"OptionalTensorList", kVector4},
    {"AllocationDetails", kAllocation}, {"ExtraTensorInfo", kExtra}, {"Chain", kChain}, {"Instruction", kInstruction},
    {"KernelCall", kCall}, {"DelegateCall", kCall}, {"MoveCall", kTwo4}, {"JumpFalseCall", kTwo4}, {"FreeCall", kOne4},
    {"FrameList", kFrameList}, {"Frame", kFrame}, {"Operator", kTwoStrings}, {"BackendDelegate", kDelegate},
    {"BackendDelegateDataReference", kDataReference}, {"CompileSpec", kCompileSpec}, {"BackendDelegateInlineData", kVector1},
    {"Buffer", kVector1}, {"DataSegment", kTwo8}, {"SubsegmentOffsets", kSubsegment}, {"NamedData", kNamed},
    {"NonConstBufferDevice", kBufferDevice}, {"FlatTensor", kFlatTensor}, {"NamedData", kFlatNamed}, {"TensorLayout", kLayout},
};
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
